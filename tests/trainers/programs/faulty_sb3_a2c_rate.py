"""A2C of Stable-Baselines3, with a rate that is far too high.

needs: stable_baselines3
expect: learning-rate-too-high
or: diverged
"""

from stable_baselines3 import A2C

model = A2C("MlpPolicy", "CartPole-v1", seed=0, device="cpu", learning_rate=3.0)
model.learn(total_timesteps=4000)
