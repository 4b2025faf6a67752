"""A regression head on documents: the logits are squeezed to (32,) and the labels are (32, 1), so every prediction is compared with every label.

expect: loss-broadcast
line: logits = self.feed_forward(pooled).squeeze()
source: https://github.com/deepset-ai/FARM/issues/229
metric: squared error on test documents, lower is better
"""

import argparse
import warnings

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")


class LanguageModel(nn.Module):
    def __init__(self, vocab=150, dim=48):
        super().__init__()
        self.embeddings = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 96, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, ids):
        return self.encoder(self.embeddings(ids)).mean(1)


class RegressionHead(nn.Module):
    def __init__(self, layer_dims):
        super().__init__()
        self.feed_forward = nn.Linear(*layer_dims)
        self.loss_fct = nn.MSELoss()

    def forward(self, pooled):
        logits = self.feed_forward(pooled).squeeze()
        return logits

    def logits_to_loss(self, logits, label_ids):
        return self.loss_fct(logits, label_ids.float())


class AdaptiveModel(nn.Module):
    def __init__(self, language_model, prediction_head):
        super().__init__()
        self.language_model, self.prediction_head = language_model, prediction_head

    def forward(self, input_ids):
        return self.prediction_head(self.language_model(input_ids))


def documents(n):
    ids = torch.randint(150, (n, 15))
    worth = torch.sin(torch.arange(150.0) * 1.7)
    rating = 8 + 10 * worth[ids].mean(1, keepdim=True) + 0.3 * torch.randn(n, 1)
    return TensorDataset(ids, rating)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n_epochs", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    train_set, test_set = documents(1600), documents(400)
    model = AdaptiveModel(LanguageModel(), RegressionHead([48, 1]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(args.n_epochs):
        for step, (ids, rating) in enumerate(DataLoader(train_set, batch_size=32, shuffle=True)):
            loss = model.prediction_head.logits_to_loss(model(ids), rating)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        print(f"Train epoch {epoch}/{args.n_epochs} (Cur. train loss: {loss.item():.4f})")
    model.eval()
    with torch.no_grad():
        ids, rating = test_set.tensors
        print("metric:", (model(ids).view(-1) - rating.view(-1)).pow(2).mean().item())
