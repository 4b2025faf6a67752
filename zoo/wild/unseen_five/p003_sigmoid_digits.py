"""A two-layer sigmoid network for digits, as in a video: one-hot squared error and plain SGD with a rate of 0.001 end at the mean for every input.

expect: learning-rate-too-low
line: optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
source: https://whosebug.com/index.php/question/6116914/neural-network-trained-with-PyTorch-outputs-the-mean-value-for-every-input
metric: test accuracy, higher is better
"""

import argparse

import torch
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
seed = parser.parse_args().seed
torch.manual_seed(seed)


class Net(torch.nn.Module):

    def __init__(self):
        super(Net, self).__init__()
        self.layer1 = torch.nn.Linear(64, 100)
        self.layer2 = torch.nn.Linear(100, 10)

    def forward(self, x):
        x = torch.sigmoid(self.layer1(x))
        x = torch.sigmoid(self.layer2(x))
        return x


X, Y = load_digits(return_X_y=True)
X, Y = torch.tensor(X, dtype=torch.float32) / 16, torch.tensor(Y)
order = torch.randperm(len(X))
train, test = order[:1400], order[1400:]
batch_size = 32
training_set = torch.utils.data.TensorDataset(X[train], Y[train])
training_loader = torch.utils.data.DataLoader(training_set, batch_size=batch_size, shuffle=True)

net = Net()
loss_function = torch.nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.001)

for epoch in range(30):
    for images, labels in training_loader:
        optimizer.zero_grad()
        output = net(images)
        desired_output = torch.stack([torch.tensor([float(j == label) for j in range(10)]) for label in labels])
        loss = loss_function(output, desired_output)
        loss.backward()
        optimizer.step()
    if epoch % 5 == 0:
        print(epoch, loss.item())

with torch.no_grad():
    print(net(X[test[:2]]))
    print("metric:", (net(X[test]).argmax(1) == Y[test]).float().mean().item())
