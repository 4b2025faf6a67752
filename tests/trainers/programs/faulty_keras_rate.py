"""Keras, with a rate that is far too high.

needs: keras
expect: learning-rate-too-high
or: diverged
"""

import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
x, y = (digits.data / 16).astype("float32"), digits.target
model = keras.Sequential(
    [
        keras.Input((64,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dropout(0.1),
        keras.layers.Dense(10),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(3.0),
    metrics=["accuracy"],
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
history = model.fit(
    x[:1400], y[:1400], batch_size=32, epochs=6, validation_data=(x[1400:], y[1400:]), verbose=2
)
print("logged: train", history.history["loss"][-1], "over 44 eval", history.history["val_loss"][-1])
