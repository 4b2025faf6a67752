"""A2C of Stable-Baselines3 with its defaults, on CartPole.

expect: nothing
"""

import sys

from stable_baselines3 import A2C

model = A2C("MlpPolicy", "CartPole-v1", seed=int(sys.argv[-1]) if len(sys.argv) > 2 else 0, device="cpu")
model.learn(total_timesteps=4000)
