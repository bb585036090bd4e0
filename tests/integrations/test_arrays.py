"""The arrays of katro in PyTorch and JAX: same memory, same type, and when they change."""

import numpy as np
import pytest
import torch

import katro

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def jnp():
    import jax

    return jax.numpy


def address(array):
    return array.ctypes.data


def arrays_of(value, name=""):
    """Every array of numbers in a step, by its name, however deep."""
    if isinstance(value, np.ndarray):
        return {name: value} if value.dtype != object else {}
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, tuple):
        value = dict(enumerate(value))
    if not isinstance(value, dict):
        return {}
    return {k: v for key in value for k, v in arrays_of(value[key], f"{name}.{key}").items()}


def step_of_batch(games, **options):
    """A step in which some games have ended, so that it has everything a step can have."""
    batch = katro.Batch(
        games, rules="katro-fieldnotes", autoreset_mode="SameStep", max_plies=3, **options
    )
    batch.reset()
    for _ in range(3):
        step = batch.step(batch.choose("random"))
    assert step.finals is not None
    return step


def step_of_envs(games, **options):
    envs = katro.KatroVectorEnv(
        games, rules="katro-fieldnotes", autoreset_mode="SameStep", max_plies=3, **options
    )
    _, infos = envs.reset()
    for _ in range(3):
        step = envs.step(infos["action_mask"].argmax(axis=1))
        infos = step[4]
    assert "final_info" in infos
    return (*step, envs.action_masks(), *envs.afterstates())


STEPS = [
    (step_of_batch, {}),
    (step_of_batch, {"copy": False}),
    (step_of_envs, {}),
    (step_of_envs, {"copy": False}),
    (step_of_envs, {"observation": "dict"}),
]
ids = ["batch", "batch, copy=False", "envs", "envs, copy=False", "envs, dict"]


@pytest.mark.parametrize(("make", "options"), STEPS, ids=ids)
@pytest.mark.parametrize("games", [1, 7, 1000])
def test_torch_sees_every_array_in_its_own_memory_and_type(make, options, games):
    arrays = arrays_of(make(games, **options))
    assert len(arrays) > 15
    for name, array in arrays.items():
        assert array.flags.c_contiguous, name
        assert array.flags.writeable, name
        for tensor in (torch.from_dlpack(array), torch.from_numpy(array)):
            assert tensor.data_ptr() == address(array), name
            assert tensor.numpy().dtype == array.dtype, name
            assert tuple(tensor.shape) == array.shape, name
        assert np.from_dlpack(array).ctypes.data == address(array), name


@pytest.mark.parametrize(("make", "options"), STEPS, ids=ids)
@pytest.mark.parametrize("games", [1, 7, 1000])
def test_jax_sees_every_array_as_it_is_but_for_64_bits(make, options, games, jnp):
    for name, array in arrays_of(make(games, **options)).items():
        narrow = {"int64": "int32", "float64": "float32"}.get(array.dtype.name, array.dtype.name)
        for convert in (jnp.asarray, jnp.array, jnp.from_dlpack):
            seen = convert(array)
            assert seen.dtype.name == narrow, name
            assert np.array_equal(seen, array), name


def test_jax_keeps_64_bits_if_it_may(jnp):
    import jax

    step = katro.Batch(3).reset()
    with jax.enable_x64(True):
        assert jnp.asarray(step.to_move).dtype == "int64"
        assert jnp.from_dlpack(step.reward).dtype == "float64"


@pytest.mark.parametrize("offset", range(0, 128, 16))
def test_jax_shares_memory_only_where_it_is_aligned_to_64_bytes(offset, jnp):
    import jax

    space = np.zeros(36 * 64 + 256, np.uint8)
    start = -address(space) % 64 + offset
    array = space[start : start + 36 * 64].reshape(64, 6, 6)
    array[:] = katro.Batch(64).reset().observation
    aligned = address(array) % 64 == 0
    assert aligned == (offset % 64 == 0)
    for shared in (jnp.from_dlpack(array), jax.device_put(array)):
        assert (shared.unsafe_buffer_pointer() == address(array)) == aligned
    for copied in (jnp.array(array), jnp.asarray(array)):
        assert copied.unsafe_buffer_pointer() != address(array)
    if not aligned:
        with pytest.raises(ValueError, match="aligned"):
            jnp.from_dlpack(array, copy=False)


@pytest.mark.parametrize("convert", ["from_numpy", "from_dlpack", "as_tensor"])
def test_what_torch_was_given_stays_as_it_was_by_default(convert):
    envs = katro.KatroVectorEnv(64, rules="katro-4x4", max_plies=9, autoreset_mode="SameStep")
    observations, infos = envs.reset()
    rng, kept = np.random.default_rng(0), []
    for _ in range(100):
        actions = (rng.random((64, 4)) * infos["action_mask"]).argmax(axis=1)
        observations, *rest, infos = envs.step(actions)
        for array in (observations, *rest, infos["action_mask"], infos["to_move"]):
            tensor = getattr(torch, convert)(array)
            kept.append((tensor, tensor.clone()))
    assert all(torch.equal(*pair) for pair in kept)


def test_without_copies_what_shares_memory_changes_at_the_next_step(jnp):
    envs = katro.KatroVectorEnv(64, copy=False)
    observations, infos = envs.reset()
    shared = torch.from_dlpack(observations), torch.from_numpy(infos["to_move"])
    kept = torch.tensor(observations), jnp.array(observations), jnp.asarray(observations)
    assert (shared[0] == 2).all()
    assert (shared[1] == 0).all()
    again = envs.step(np.arange(64) % 6)[0]
    assert address(again) == shared[0].data_ptr()
    assert not (shared[0] == 2).all()
    assert (shared[1] == 1).all()
    assert all((copy == 2).all() for copy in kept)


def test_actions_come_from_tensors_too(jnp):
    batch = katro.Batch(6)
    for actions in (torch.arange(6), torch.arange(6, dtype=torch.int32), jnp.arange(6)):
        batch.reset()
        batch.step(actions)
        assert batch.boards() == [katro.Board().play(i) for i in range(6)]
    batch.reset()
    with pytest.raises(TypeError, match="integer"):
        batch.step(torch.zeros(6))


def test_the_page(check_page, jnp):
    names = check_page("arrays.md", "torch", "jax", "numpy")
    # What the page calls a search of one ply is plain greed.
    batch = katro.Batch(1024)
    batch.reset()
    greedy = batch.step(batch.choose("greedy")).observation
    batch.reset()
    chosen = batch.step(names["actions"]).observation
    assert np.array_equal(chosen[:, :3].sum(axis=(1, 2)), greedy[:, :3].sum(axis=(1, 2)))
