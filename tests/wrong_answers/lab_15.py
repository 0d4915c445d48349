"""Answers to lab 15: right ones in other habits, and wrong ones with the words that they must hear."""

import re
import textwrap

from wrong_answers import Mutant, Right, Wrong


def hosted(body: str, outside: str = "") -> str:
    """A cell with make_host_fn around that body of host_fn; `outside` stands above host_fn."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    above = textwrap.indent(textwrap.dedent(outside).strip(), " " * 4)
    return f"def make_host_fn(directory, every):\n{above}\n\n    def host_fn(step, loss, rate):\n{inner}\n\n    return host_fn\n"


def acting(body: str, more: str = "") -> str:
    """A cell with the hook, in which that body stands for the TODO."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    return f"""class Every(v1.train.SessionRunHook):
    def __init__(self, steps, action):
        self.steps, self.action = steps, action
        self.last = 0

    def begin(self):
        self.global_step = v1.train.get_global_step()
{more}
    def after_run(self, run_context, run_values):
        step = run_context.session.run(self.global_step)
{inner}
"""


def scaffolded(body: str) -> str:
    """A cell with make_scaffold_fn, in which that body is scaffold_fn's."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), " " * 8)
    return f"def make_scaffold_fn(checkpoint):\n    def scaffold_fn():\n{inner}\n\n    return scaffold_fn\n"


SHARE = r"""
def share(files, params):
    if "context" not in params:
        return files
    _, host, hosts, _ = params["context"].current_input_fn_deployment()
    if len(files) < hosts:
        raise ValueError(f"{len(files)} files for {hosts} hosts: each needs one at least")
    return files[host::hosts]
"""

ANSWERS = {
    "15a": [
        # Two contexts, one in the other; the condition outside
        Right(
            hosted("""
            due = tf.equal(tf.math.floormod(step[0], every), 0)
            with tf.summary.create_file_writer(directory).as_default(step=step[0]):
                with tf.summary.record_if(due):
                    tf.summary.scalar("learning_rate", tf.reduce_max(rate))
                    tf.summary.scalar("loss", tf.add_n(tf.unstack(loss)) / tf.cast(tf.size(loss), tf.float32))
            return v1.summary.all_v2_summary_ops()
            """)
        ),
        Right(
            hosted("""
            now = step[0]
            with tf.summary.create_file_writer(directory).as_default(), tf.summary.record_if(tf.equal(now % every, 0)):
                ops = [tf.summary.scalar(name, tf.reduce_mean(value), step=now)
                       for name, value in (("loss", loss), ("learning_rate", rate))]
            return ops
            """)
        ),
        Wrong(
            hosted("""
            if int(step[0]) % every == 0:
                with tf.summary.create_file_writer(directory).as_default():
                    tf.summary.scalar("loss", tf.reduce_mean(loss), step=step[0])
            return v1.summary.all_v2_summary_ops()
            """),
            re.compile("int|Python"),
        ),
        Wrong(
            hosted("""
            with tf.summary.create_file_writer(directory).as_default():
                v1.summary.scalar("loss", tf.reduce_mean(loss))
            return v1.summary.all_v2_summary_ops()
            """),
            "tf.summary.scalar",
        ),
        Wrong(
            hosted(
                """
                with writer.as_default(), tf.summary.record_if(tf.equal(step[0] % every, 0)):
                    tf.summary.scalar("loss", tf.reduce_mean(loss), step=step[0])
                return v1.summary.all_v2_summary_ops()
                """,
                "writer = tf.summary.create_file_writer(directory)",
            ),
            "made outside of it",
        ),
        Mutant("with writer.as_default(), ", "with ", "within `with writer.as_default()`"),
        Mutant(
            "tf.reduce_mean(loss), step=step[0]",
            "loss, step=step[0]",
            re.compile("scalar|The values that host_fn writes under loss"),
        ),
        Mutant(
            '"learning_rate", rate[0], step=step[0]',
            '"learning_rate", rate[0], step=0',
            "the steps at which host_fn writes learning_rate",
        ),
    ],
    "15b": [
        Right(
            acting("""
            if step < self.last + self.steps:
                return
            self.last = step
            self.action(step)
            """)
        ),
        Right("""
            class Every(v1.train.SessionRunHook):
                def __init__(self, steps, action):
                    self.steps, self.action, self.next = steps, action, steps

                def begin(self):
                    self.global_step = v1.train.get_global_step()

                def after_run(self, run_context, run_values):
                    now = run_context.session.run(self.global_step)
                    if now >= self.next:
                        self.action(now)
                        self.next = now + self.steps
        """),
        # Always at the first call
        Wrong(
            acting("""
            if not self.last or step - self.last >= self.steps:
                self.action(step)
                self.last = step
            """),
            "With steps=50 and loops of 1,",
        ),
        # The step is noted at each call
        Wrong(
            acting("""
            if step - self.last >= self.steps:
                self.action(step)
            self.last = step
            """),
            "yours gives []",
        ),
        # Calls are counted, not steps
        Wrong(
            acting("""
            self.last += 1
            if self.last == self.steps:
                self.action(step)
                self.last = 0
            """),
            "With steps=50 and loops of 30,",
        ),
        Mutant(">= self.steps", "> self.steps", "With steps=50 and loops of 1,"),
        Mutant("self.action(step)", "self.action()", "action"),
        Mutant("            self.action(step)\n", "", "yours gives []"),
    ],
    "15c": [
        # Variable by variable
        Right(
            scaffolded("""
            names = [name for name, _ in tf.train.list_variables(checkpoint) if name.startswith("conv2d/")]
            v1.train.init_from_checkpoint(checkpoint, {name: name for name in names})
            return v1.train.Scaffold()
            """)
        ),
        # A Saver that restores once the others have started
        Right(
            scaffolded("""
            convolution = [each for each in v1.global_variables() if each.op.name.startswith("conv2d/")]
            saver = v1.train.Saver(convolution)
            return v1.train.Scaffold(init_fn=lambda scaffold, session: saver.restore(session, checkpoint))
            """)
        ),
        Wrong(
            """
            def make_scaffold_fn(checkpoint):
                v1.train.init_from_checkpoint(checkpoint, {"conv2d/": "conv2d/"})

                def scaffold_fn():
                    return v1.train.Scaffold()

                return scaffold_fn
            """,
            "inside scaffold_fn",
        ),
        Wrong(
            """
            def make_scaffold_fn(checkpoint):
                return v1.train.Scaffold()
            """,
            "the function scaffold_fn",
        ),
        Mutant("        return v1.train.Scaffold()\n", "", "a v1.train.Scaffold"),
        Mutant('{"conv2d/": "conv2d/"}', '{"conv2d/": "convolution/"}', "conv2d/kernel"),
        Mutant(
            '{"conv2d/": "conv2d/"}',
            '{"conv2d/kernel": "conv2d/kernel"}',
            "The initial value of conv2d/bias",
        ),
        Mutant(
            '{"conv2d/": "conv2d/"}', '{"dense/": "dense/"}', "The initial value of conv2d/kernel"
        ),
    ],
    "15d": [
        Right(r"""
def share(files, params):
    context = params.get("context")
    if context is None:
        return list(files)
    deployment = context.current_input_fn_deployment()
    host, hosts = deployment[1], deployment[2]
    if hosts > len(files):
        raise ValueError("too few files: %d for %d hosts" % (len(files), hosts))
    return [file for n, file in enumerate(files) if n % hosts == host]
"""),
        # Contiguous, by array_split
        Right(r"""
def share(files, params):
    try:
        context = params["context"]
    except KeyError:
        return files
    _device, host, hosts, _cores = context.current_input_fn_deployment()
    if len(files) // hosts == 0:
        raise ValueError("{} hosts but only {} files".format(hosts, len(files)))
    return [str(each) for each in np.array_split(files, hosts)[host]]
"""),
        # One host is the default
        Right(r"""
def share(files, params):
    host, hosts = 0, 1
    if "context" in params:
        host, hosts = params["context"].current_input_fn_deployment()[1:3]
    if len(files) < hosts:
        raise ValueError(f"There are {len(files)} files and {hosts} hosts.")
    return sorted(files)[host::hosts]
"""),
        # Blocks that leave out the rest, and blocks rounded up
        Wrong(
            SHARE.replace(
                "files[host::hosts]",
                "files[host * (len(files) // hosts):(host + 1) * (len(files) // hosts)]",
            ),
            ", nobody reads train-",
        ),
        Wrong(
            SHARE.replace(
                "files[host::hosts]",
                "files[host * -(-len(files) // hosts):(host + 1) * -(-len(files) // hosts)]",
            ),
            "has no file, and the others would wait",
        ),
        # As many as hosts refused
        Wrong(
            SHARE.replace("len(files) < hosts", "len(files) <= hosts"),
            "10 files for 10 hosts: each needs one at least",
        ),
        # Cores for hosts
        Wrong(
            SHARE.replace("_, host, hosts, _ =", "_, host, _, hosts ="),
            ", nobody reads train-",
        ),
        # Message with one number
        Wrong(
            SHARE.replace(
                'f"{len(files)} files for {hosts} hosts: each needs one at least"',
                'f"need at least {hosts} files"',
            ),
            "raise a ValueError that states both numbers",
        ),
        Mutant("return files[host::hosts]", "return files[::hosts]", "nobody"),
        Mutant("return files[host::hosts]", "return files", "twice"),
        Mutant("return files[host::hosts]", "return files[host]", "list"),
        Mutant('    if "context" not in params:\n        return files\n', "", 'Without "context"'),
        Mutant("    if len(files) < hosts:", "    if False:", "ValueError"),
    ],
    "15e": [
        # By cases
        Right(r"""
def input_calls(mode, batch, hosts, cores):
    if mode in ("BROADCAST", "SLICED"):
        return 1, batch
    if mode == "PER_SHARD_V1":
        return cores, batch // cores
    return hosts, batch // (hosts if mode.endswith("V1") else cores)
"""),
        # A list
        Right(r"""
def input_calls(mode, batch, hosts, cores):
    calls = {"BROADCAST": 1, "SLICED": 1, "PER_SHARD_V1": cores}.get(mode, hosts)
    pieces = {"BROADCAST": 1, "SLICED": 1, "PER_HOST_V1": hosts}.get(mode, cores)
    return [calls, int(batch / pieces)]
"""),
        # Floats
        Wrong(
            r"""
def input_calls(mode, batch, hosts, cores):
    calls = {"BROADCAST": 1, "SLICED": 1, "PER_SHARD_V1": cores}.get(mode, hosts)
    pieces = {"BROADCAST": 1, "SLICED": 1, "PER_HOST_V1": hosts}.get(mode, cores)
    return calls, batch / pieces
""",
            "whole number",
        ),
        Mutant(
            '"PER_HOST_V1": (hosts, batch // hosts)',
            '"PER_HOST_V1": (hosts, batch)',
            "for all cores of that host",
        ),
        Mutant(
            '"PER_HOST_V2": (hosts, batch // cores)',
            '"PER_HOST_V2": (hosts, batch // hosts)',
            "one core",
        ),
        Mutant(
            '"PER_SHARD_V1": (cores, batch // cores)',
            '"PER_SHARD_V1": (hosts, batch // cores)',
            "each core",
        ),
        Mutant('"BROADCAST": (1, batch)', '"BROADCAST": (1, batch // cores)', "whole batch"),
        Mutant('"SLICED": (1, batch)', '"SLICED": (1, batch // cores)', "SLICED"),
    ],
    "15f": [
        Right("modes = dict(modes, old=str('PER_SHARD_V1'))"),
        Right("modes = {**modes, 'more': 'PER_HOST_V1'}"),
        Wrong(
            "modes = {**modes, 'transposed': 'PER_HOST_V1'}", "must not split a batch along axis 0"
        ),
        Wrong("modes = {**modes, 'one reader': 'BROADCAST'}", "each example must go to one core"),
        Wrong("modes = {**modes, 'split': 'SLICED'}", "Every core needs the whole batch"),
        Wrong(
            "modes = {**modes, 'old': 'PER_HOST_V1'}", "must not split a batch for one core further"
        ),
        Wrong("modes = {**modes, 'old': 'PER_CORE'}", "is not one of PER_HOST_V1"),
        Wrong("modes = list(modes)", "Expected a dict"),
    ],
}
