"""A federated MLP that ends in Softmax while the loss is NLLLoss: the loss is negative and learning crawls.

expect: output-misfits-loss
or: negative-loss
line: self.softmax = nn.Softmax(dim=1)
source: https://github.com/AshwinRJ/Federated-Learning-PyTorch/issues/30
metric: test accuracy, higher is better
"""

import argparse
import copy

import numpy as np
import torch
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class MLP(nn.Module):
    def __init__(self, dim_in, dim_hidden, dim_out):
        super(MLP, self).__init__()
        self.layer_input = nn.Linear(dim_in, dim_hidden)
        self.relu = nn.ReLU()
        self.layer_hidden = nn.Linear(dim_hidden, dim_out)
        self.softmax = nn.Softmax(dim=1)

    def forward(self, x):
        x = self.relu(self.layer_input(x))
        return self.softmax(self.layer_hidden(x))


class LocalUpdate(object):
    def __init__(self, dataset, lr):
        self.loader = DataLoader(dataset, batch_size=16, shuffle=True)
        self.criterion = nn.NLLLoss()
        self.lr = lr

    def update_weights(self, model, epochs):
        model.train()
        epoch_loss = []
        optimizer = torch.optim.SGD(model.parameters(), lr=self.lr, momentum=0.5)
        for _ in range(epochs):
            for images, labels in self.loader:
                model.zero_grad()
                log_probs = model(images)
                loss = self.criterion(log_probs, labels)
                loss.backward()
                optimizer.step()
                epoch_loss.append(loss.item())
        return model.state_dict(), sum(epoch_loss) / len(epoch_loss)


def average_weights(w):
    w_avg = copy.deepcopy(w[0])
    for key in w_avg:
        w_avg[key] = sum(x[key] for x in w) / len(w)
    return w_avg


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--num_users", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)

    x, y = make_classification(2400, 20, n_informative=12, n_classes=12, n_clusters_per_class=1, class_sep=2.0, random_state=args.seed)
    x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
    y = torch.tensor(y)
    users = [TensorDataset(x[i:1800:args.num_users], y[i:1800:args.num_users]) for i in range(args.num_users)]
    global_model = MLP(20, 64, 12)

    for epoch in range(args.rounds):
        local_weights, local_losses = [], []
        for user in users:
            w, loss = LocalUpdate(user, lr=0.05).update_weights(copy.deepcopy(global_model), 1)
            local_weights.append(w)
            local_losses.append(loss)
        global_model.load_state_dict(average_weights(local_weights))
        print("Global round", epoch + 1, "loss", sum(local_losses) / len(local_losses))

    global_model.eval()
    with torch.no_grad():
        accuracy = (global_model(x[1800:]).argmax(1) == y[1800:]).float().mean().item()
    print("metric: %.4f" % accuracy)
