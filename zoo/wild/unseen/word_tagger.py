"""Part-of-speech tagger with a bidirectional GRU; CrossEntropyLoss wants (batch, tags, time) and the scores were brought there with view instead of a transpose, so scores and tags of different words were compared.

expect: target-misaligned
line: scores.view(batch_size, N_TAGS, -1)
source: https://github.com/voiler/IMPALA/issues/3
metric: share of words with the right tag, higher is better
"""
import argparse

import torch
import torch.nn as nn
import torch.optim as optim

N_WORDS, N_TAGS, T = 120, 6, 14


class Tagger(nn.Module):
    def __init__(self, emb=24, hid=24):
        super(Tagger, self).__init__()
        self.word_embeddings = nn.Embedding(N_WORDS, emb)
        self.rnn = nn.GRU(emb, hid, batch_first=True, bidirectional=True)
        self.hidden2tag = nn.Linear(2 * hid, N_TAGS)

    def forward(self, sentence):
        out, _ = self.rnn(self.word_embeddings(sentence))
        return self.hidden2tag(out)


def corpus(n, tag_of_word, generator):
    """A word has its usual tag, unless the word before is a determiner (tag 0)."""
    words = torch.randint(0, N_WORDS, (n, T), generator=generator)
    tags = tag_of_word[words]
    after_det = torch.zeros_like(tags, dtype=torch.bool)
    after_det[:, 1:] = tags[:, :-1] == 0
    tags = torch.where(after_det & (tags == 2), torch.full_like(tags, 1), tags)
    return words, tags


def main(seed):
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed)
    tag_of_word = torch.randint(0, N_TAGS, (N_WORDS,), generator=g)
    words, tags = corpus(800, tag_of_word, g)
    test_words, test_tags = corpus(200, tag_of_word, g)

    model = Tagger()
    loss_function = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.01)

    for epoch in range(8):
        for idx in torch.randperm(800).split(32):
            sentence, target = words[idx], tags[idx]
            batch_size = sentence.size(0)
            scores = model(sentence)
            scores = scores.view(batch_size, N_TAGS, -1)
            loss = loss_function(scores, target)
            model.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch {:d} loss {:.3f}".format(epoch, loss.item()))

    with torch.no_grad():
        predicted = model(test_words).argmax(dim=2)
        accuracy = (predicted == test_tags).float().mean().item()
    print("metric: {:.4f}".format(accuracy))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args().seed)
