"""The hidden state of the bidirectional GRU comes as (directions, batch, hidden) and I viewed it as (batch, 2 * hidden).

expect: samples-mixed
line: hidden = hidden.view(batch_size, self.hidden_size * 2)
source: https://github.com/timbmg/Sentence-VAE/issues/15
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.utils.rnn as rnn_utils


class SentenceEncoder(nn.Module):
    def __init__(self, vocab_size, embedding_size, hidden_size, num_classes):
        super().__init__()
        self.hidden_size = hidden_size
        self.embedding = nn.Embedding(vocab_size, embedding_size)
        self.encoder_rnn = nn.GRU(embedding_size, hidden_size, bidirectional=True, batch_first=True)
        self.hidden2out = nn.Linear(hidden_size * 2, num_classes)

    def forward(self, input_sequence, length):
        batch_size = input_sequence.size(0)
        sorted_lengths, sorted_idx = torch.sort(length, descending=True)
        input_sequence = input_sequence[sorted_idx]

        input_embedding = self.embedding(input_sequence)
        packed_input = rnn_utils.pack_padded_sequence(input_embedding, sorted_lengths.tolist(), batch_first=True)
        _, hidden = self.encoder_rnn(packed_input)

        # flatten the two directions
        hidden = hidden.view(batch_size, self.hidden_size * 2)

        _, reversed_idx = torch.sort(sorted_idx)
        return self.hidden2out(hidden[reversed_idx])


class Sentences(torch.utils.data.Dataset):
    """Class: which of the three marker words the sentence has."""

    def __init__(self, n, max_len=12):
        self.length = torch.randint(5, max_len + 1, (n,))
        self.x = torch.randint(4, 30, (n, max_len))
        self.y = torch.randint(0, 3, (n,))
        for i in range(n):
            self.x[i, torch.randint(0, int(self.length[i]), (1,))] = 1 + self.y[i]
            self.x[i, self.length[i] :] = 0

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"input": self.x[i], "length": self.length[i], "target": self.y[i]}


def main(args):
    torch.manual_seed(args.seed)
    splits = {"train": Sentences(1600), "valid": Sentences(400)}
    model = SentenceEncoder(30, 12, 24, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    NLL = nn.CrossEntropyLoss()

    for epoch in range(args.epochs):
        for split in ("train", "valid"):
            loader = torch.utils.data.DataLoader(splits[split], batch_size=32, shuffle=split == "train")
            model.train() if split == "train" else model.eval()
            correct, total_loss = 0, 0.0
            for batch in loader:
                with torch.set_grad_enabled(split == "train"):
                    logits = model(batch["input"], batch["length"])
                    loss = NLL(logits, batch["target"])
                if split == "train":
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                correct += (logits.argmax(1) == batch["target"]).sum().item()
                total_loss += loss.item()
            print("%s Epoch %02d/%i, Mean loss %9.4f" % (split.upper(), epoch, args.epochs, total_loss / len(loader)))
    print("metric: %.4f" % (correct / len(splits["valid"])))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-ep", "--epochs", type=int, default=5)
    main(parser.parse_args())
