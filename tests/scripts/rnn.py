# A character model with an LSTM, truncated backpropagation and clipping.
import torch
import torch.nn as nn

from utils import checksum

text = "the quick brown fox jumps over the lazy dog. " * 6
letters = sorted(set(text))
codes = torch.tensor([letters.index(c) for c in text])

torch.manual_seed(4)


class CharRNN(nn.Module):
    def __init__(self, letters, width=24):
        super().__init__()
        self.embed = nn.Embedding(letters, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.out = nn.Linear(width, letters)

    def forward(self, x, state=None):
        y, state = self.lstm(self.embed(x), state)
        return self.out(y), state


model = CharRNN(len(letters))
optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
state = None
for step, start in enumerate(range(0, len(codes) - 17, 16)):
    x, y = codes[start : start + 16][None], codes[start + 1 : start + 17][None]
    logits, state = model(x, state)
    state = tuple(s.detach() for s in state)
    loss = criterion(logits.flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    if step % 5 == 0:
        print(f"step {step} loss {loss.item():.6f} norm {norm.item():.6f}")

model.eval()
with torch.inference_mode():
    letter, written = codes[:1][None], ""
    state = None
    for _ in range(10):
        logits, state = model(letter, state)
        letter = logits[:, -1].argmax(-1, keepdim=True)
        written += letters[letter.item()]
print(repr(written))
print("weights", checksum(model))
