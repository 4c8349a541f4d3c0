"""What NeMo Gym's launcher starts as the resources server."""

from ecomlab.bridges.nemo_gym import ShoppingServer

if __name__ == "__main__":
    ShoppingServer.run_webserver()
