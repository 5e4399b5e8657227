"""JAX and parameter servers, without an adapter: the array door around a jitted gradient function.

Ends with success when the loss is small. Under mpirun one rank serves: ``mpirun -np 3 python -m
fleet_mpi.examples.jax_arrays``. Needs jax.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import fleet_mpi


def loss(params, x, y):
    """Of a perceptron with one hidden layer."""
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return jnp.mean((hidden @ params["w2"] - y) ** 2)


def main(steps=300):
    """Fit a curve; returns 0 when it fits."""
    value_and_grad = jax.jit(jax.value_and_grad(loss))
    with fleet_mpi.join(servers=1) as job:
        draw = np.random.default_rng(job.worker)
        params = {"w1": draw.normal(size=(1, 32)).astype("f4"), "b1": draw.normal(size=32).astype("f4"),
                  "w2": (draw.normal(size=(32, 1)) / 8).astype("f4")}
        server = job.parameter_server(params, rule="adam", lr=0.02)   # params become views that each step fills
        server.pull()
        for _ in range(steps):
            x = draw.uniform(-2, 2, (64, 1)).astype("f4")
            # A copy: JAX may read a numpy array later, and the next step writes to it.
            found, grads = value_and_grad({name: jnp.array(one) for name, one in params.items()}, x, np.sin(2 * x))
            server.push_pull(grads)
        print(f"worker {job.worker} of {job.workers}: loss {float(found):.4f}")
    return 0 if found < 0.02 else 1


if __name__ == "__main__":
    sys.exit(main())
