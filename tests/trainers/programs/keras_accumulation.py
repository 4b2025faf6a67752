"""Keras on torch: accumulation, clipping, a schedule, a log file and early stopping.

needs: keras
expect: nothing
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
        keras.layers.Dense(64, activation="gelu"),
        keras.layers.LayerNormalization(),
        keras.layers.Dense(10),
    ]
)
schedule = keras.optimizers.schedules.CosineDecay(5e-3, 720)
model.compile(
    optimizer=keras.optimizers.AdamW(schedule, clipnorm=1.0, gradient_accumulation_steps=4),
    metrics=["accuracy"],
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
)
history = model.fit(
    x[:1400],
    y[:1400],
    batch_size=16,
    epochs=8,
    validation_data=(x[1400:], y[1400:]),
    verbose=2,
    callbacks=[
        keras.callbacks.CSVLogger("log.csv"),
        keras.callbacks.EarlyStopping(patience=4),
        keras.callbacks.ModelCheckpoint("best.keras", save_best_only=True),
    ],
)
print("logged: train", history.history["loss"][-1], "over 88 eval", history.history["val_loss"][-1])
