"""An encoder-decoder with attention that reverses words; batches are padded and the padding is ignored everywhere.

expect: nothing
style: seq2seq with packing, masked attention, ignore_index and scheduled teacher forcing
"""

import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, SOS, EOS = 0, 1, 2
VOCAB = 14


class EncoderRNN(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, hidden_size, padding_idx=PAD)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)

    def forward(self, src, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(src), lengths, batch_first=True, enforce_sorted=False)
        out, hidden = self.gru(packed)
        return nn.utils.rnn.pad_packed_sequence(out, batch_first=True)[0], hidden


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, hidden_size, padding_idx=PAD)
        self.Wa = nn.Linear(hidden_size, hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, VOCAB)

    def forward(self, enc, hidden, mask, target, teacher_forcing=1.0):
        token, outputs = target[:, :1], []
        for t in range(1, target.size(1)):
            scores = torch.bmm(self.Wa(hidden.transpose(0, 1)), enc.transpose(1, 2)).masked_fill(mask, float("-inf"))
            context = torch.bmm(F.softmax(scores, dim=-1), enc)
            output, hidden = self.gru(torch.cat([self.embedding(token), context], 2), hidden)
            logits = self.out(output)
            outputs.append(logits)
            token = target[:, t : t + 1] if random.random() < teacher_forcing else logits.argmax(-1)
        return torch.cat(outputs, 1)


def get_batch(n):
    words = [[random.randrange(3, VOCAB) for _ in range(random.randint(3, 7))] for _ in range(n)]
    src = nn.utils.rnn.pad_sequence([torch.tensor(w) for w in words], batch_first=True, padding_value=PAD)
    trg = nn.utils.rnn.pad_sequence([torch.tensor([SOS] + w[::-1] + [EOS]) for w in words], batch_first=True, padding_value=PAD)
    return src, [len(w) for w in words], trg


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=280)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    encoder, decoder = EncoderRNN(40), AttnDecoderRNN(40)
    encoder_optimizer = torch.optim.Adam(encoder.parameters(), lr=5e-3)
    decoder_optimizer = torch.optim.Adam(decoder.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    for step in range(args.steps):
        src, lengths, trg = get_batch(32)
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        enc, hidden = encoder(src, lengths)
        logits = decoder(enc, hidden, (src == PAD).unsqueeze(1), trg, teacher_forcing=max(0.5, 1 - step / 400))
        loss = criterion(logits.reshape(-1, VOCAB), trg[:, 1:].reshape(-1))
        loss.backward()
        encoder_optimizer.step()
        decoder_optimizer.step()
        if step % 60 == 0:
            print("step %d loss %.4f" % (step, loss.item()))
    encoder.eval(), decoder.eval()
    with torch.no_grad():
        src, lengths, trg = get_batch(200)
        enc, hidden = encoder(src, lengths)
        guess = decoder(enc, hidden, (src == PAD).unsqueeze(1), trg, teacher_forcing=0.0).argmax(-1)
    real = trg[:, 1:] != PAD
    print("metric: %.4f" % (guess == trg[:, 1:])[real].float().mean().item())


if __name__ == "__main__":
    main()
