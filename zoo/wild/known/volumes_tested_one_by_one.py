"""A segmentation trainer that runs the test volumes one at a time without eval(): batch norm normalises each by itself.

expect: train-mode-evaluation
line: self.model(image[None])
source: https://github.com/wolny/pytorch-3dunet/issues/53
metric: pixel accuracy on test volumes, higher is better
"""

import argparse
import logging

import torch
import torch.nn as nn

logging.basicConfig(level=logging.INFO, format="%(message)s")
logger = logging.getLogger("UNet3DTrainer")


def volumes(n):
    """Tissue of three brightnesses; a volume has mostly one of them."""
    labels = torch.randint(3, (n, 1, 1, 1)).expand(n, 4, 8, 8).clone()
    other = torch.rand(n, 4, 8, 8) < 0.05
    labels[other] = torch.randint(3, (int(other.sum()),))
    image = labels.float() - 1.0 + 0.25 * torch.randn(n, 4, 8, 8)
    return image.unsqueeze(1), labels


class Net3D(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv3d(1, width, 3, padding=1), nn.BatchNorm3d(width), nn.ReLU(),
            nn.Conv3d(width, width, 3, padding=1), nn.BatchNorm3d(width), nn.ReLU(),
        )
        self.final_conv = nn.Conv3d(width, 3, 1)

    def forward(self, x):
        return self.final_conv(self.encoder(x))


class UNet3DTrainer:
    def __init__(self, model, optimizer, loss_criterion, max_num_epochs):
        self.model = model
        self.optimizer = optimizer
        self.loss_criterion = loss_criterion
        self.max_num_epochs = max_num_epochs

    def fit(self, image, labels):
        for epoch in range(self.max_num_epochs):
            self.model.train()
            for rows in torch.randperm(len(image)).split(8):
                loss = self.loss_criterion(self.model(image[rows]), labels[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            logger.info("Epoch [%d/%d] loss %.4f", epoch, self.max_num_epochs - 1, loss.item())

    def validate(self, images, labels):
        logger.info("Validating...")
        right = 0.0
        with torch.no_grad():
            for image, label in zip(images, labels):
                output = self.model(image[None])
                right += (output.argmax(1)[0] == label).float().mean().item()
        return right / len(images)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    model = Net3D()
    trainer = UNet3DTrainer(model, torch.optim.Adam(model.parameters(), lr=5e-3), nn.CrossEntropyLoss(), max_num_epochs=4)
    trainer.fit(*volumes(320))
    print("metric: %.4f" % trainer.validate(*volumes(60)))


if __name__ == "__main__":
    main()
