"""DQN of Stable-Baselines3, with a rate that is far too high.

needs: stable_baselines3
expect: dead-units
or: learning-rate-too-high, diverged
"""

from stable_baselines3 import DQN

model = DQN("MlpPolicy", "CartPole-v1", seed=0, device="cpu", learning_rate=3.0)
model.learn(total_timesteps=4000)
