"""Keras on torch: the functional API, a convolution, softmax in the model as Keras users write it.

needs: keras
expect: nothing
"""

import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
x, y = (digits.images / 16).astype("float32")[..., None], digits.target
inputs = keras.Input((8, 8, 1))
h = layers.Conv2D(16, 3, activation="relu", padding="same")(inputs)
h = layers.BatchNormalization()(h)
h = layers.MaxPooling2D()(h)
h = layers.Flatten()(h)
outputs = layers.Dense(10, activation="softmax")(h)
model = keras.Model(inputs, outputs)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
stop = keras.callbacks.EarlyStopping(patience=3)
history = model.fit(
    x[:1200], y[:1200], batch_size=32, epochs=5, validation_split=0.2, callbacks=[stop], verbose=2
)
tested = model.evaluate(x[1200:], y[1200:], verbose=0)
print("logged: train", history.history["loss"][-1], "over 30 eval", tested[0])
