"""llama.cpp, as much of it as the engine uses. Only imported in the engine process: a crash here ends nothing else."""

from __future__ import annotations

import ctypes
import os
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from swarmtui.llm.memory import BATCH
from swarmtui.llm.sampler import Logits

SPM = 1
"""llama.cpp's vocab type that puts a blank before every text that it tokenises."""
UPDATE = "update llama-cpp-python, or choose another model: `swarmtui models`"
WARNING, ERROR = 3, 4
"""ggml's log levels."""


class Unusable(Exception):
    """This model can't be used here."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.remedy = remedy


class Log:
    """llama.cpp's messages: all to stderr (the engine's log file), the last grave ones kept to explain a failure."""

    def __init__(self) -> None:
        self.grave: deque[str] = deque(maxlen=20)
        # ctypes frees a callback that nobody holds.
        self._callback = llama_cpp.llama_log_callback(self._hear)
        llama_cpp.llama_log_set(self._callback, ctypes.c_void_p(0))

    def _hear(self, level: int, text: bytes, _data: object) -> None:
        line = text.decode("utf-8", "replace")
        if level == ERROR and line.strip():
            self.grave.append(line.strip())
        if level in (WARNING, ERROR):
            sys.stderr.write(line)
            sys.stderr.flush()


class Weights:
    """A loaded model and, once opened, one context in which several sequences share a pool of cells.

    Raises:
        Unusable: not a model, a truncated file, an unknown architecture, too little memory.
    """

    def __init__(self, path: str, *, threads: int, gpu_layers: int, loading: Callable[[], None]) -> None:
        """
        Args:
            path: the GGUF file.
            threads, gpu_layers: as llama.cpp has them.
            loading: is called again and again while the file is loaded.
        """
        self._log = Log()
        llama_cpp.llama_backend_init()
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = gpu_layers

        def progress(_share: float, _data: object) -> bool:
            loading()
            return True

        # ctypes frees a callback that nobody holds.
        self._progress = llama_cpp.llama_progress_callback(progress)
        params.progress_callback = self._progress
        self._threads = threads
        self._model = llama_cpp.llama_model_load_from_file(os.fsencode(path), params)
        if not self._model:
            raise self._explain(path)
        self._context: Any = None
        self._memory: Any = None
        self._within: Callable[[], None] | None = None
        vocab = llama_cpp.llama_model_get_vocab(self._model)
        if vocab is None or not llama_cpp.llama_model_has_decoder(self._model):
            raise Unusable("this model doesn't write text", "choose a text model")
        self.vocabulary = LlamaVocabulary(vocab)
        self.trained_context = int(llama_cpp.llama_model_n_ctx_train(self._model))
        self.can_rewind = not (
            llama_cpp.llama_model_is_recurrent(self._model) or llama_cpp.llama_model_is_hybrid(self._model)
        )
        template = llama_cpp.llama_model_chat_template(self._model, None)
        self.template = template.decode("utf-8", "replace") if template else ""
        self.bytes = int(llama_cpp.llama_model_size(self._model))

    def cell_bytes(self) -> int:
        """Bytes that a token takes in the KV cache (an upper bound)."""
        heads = max(1, llama_cpp.llama_model_n_head(self._model))
        width = (
            llama_cpp.llama_model_n_embd(self._model) // heads * max(1, llama_cpp.llama_model_n_head_kv(self._model))
        )
        return int(llama_cpp.llama_model_n_layer(self._model) * width * 2 * 2)

    def open_context(self, cells: int, sequences: int) -> None:
        """Allocate the KV cache: room for so many tokens, of all sequences together."""
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = cells
        params.n_seq_max = sequences
        params.n_batch = params.n_ubatch = BATCH
        params.n_threads = params.n_threads_batch = self._threads
        # One pool. Split per sequence, llama.cpp evaluates a batch in as many passes through the weights as there are
        # different counts of tokens per sequence, and again for sequences that aren't neighbours.
        params.kv_unified = True
        params.no_perf = True
        self._context = llama_cpp.llama_init_from_model(self._model, params)
        if not self._context:
            why = self._log.grave[-1] if self._log.grave else "llama.cpp gave no reason"
            raise Unusable(
                f"no context of {cells} tokens: {why}",
                "set llm.slots or llm.context lower, or choose a smaller model",
            )
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = llama_cpp.llama_batch_init(BATCH, 0, 1)

    def watch(self, within: Callable[[], None] | None) -> None:
        """Call `within` again and again during the decodes to come, as they get on; None: don't.

        It costs about a millisecond a decode: for long ones only.
        """
        if (within is None) == (self._within is None):
            return
        if within is None:
            callback = llama_cpp.ggml_abort_callback()
        else:

            def go_on(_data: object, within: Callable[[], None] = within) -> bool:
                within()
                return False

            callback = llama_cpp.ggml_abort_callback(go_on)
        llama_cpp.llama_set_abort_callback(self._context, callback, ctypes.c_void_p(0))
        self._callback, self._within = callback, within

    def decode(self, entries: Sequence[tuple[int, int, int, bool]]) -> int:
        """Evaluate (token, position, sequence, wants logits); returns llama_decode's code, 0 for success."""
        batch = self._batch
        batch.n_tokens = len(entries)
        for i, (token, position, sequence, wants) in enumerate(entries):
            batch.token[i] = token
            batch.pos[i] = position
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = sequence
            batch.logits[i] = wants
        return int(llama_cpp.llama_decode(self._context, batch))

    def logits(self, index: int) -> Logits:
        """The logits of the last decode's entry at that index; valid until the next decode."""
        pointer = llama_cpp.llama_get_logits_ith(self._context, index)
        row: NDArray[np.float32] = np.ctypeslib.as_array(pointer, shape=(self.vocabulary.size,))
        return row

    def trim(self, sequence: int, keep: int) -> bool:
        """Forget a sequence's tokens from `keep` on; False (and all forgotten) if the model can't rewind so far."""
        if keep > 0 and llama_cpp.llama_memory_seq_rm(self._memory, sequence, keep, -1):
            return True
        llama_cpp.llama_memory_seq_rm(self._memory, sequence, -1, -1)
        return keep == 0

    def copy(self, source: int, target: int, keep: int) -> bool:
        """Make a sequence equal to the first `keep` tokens of another, which shares its cells; False as in `trim`."""
        llama_cpp.llama_memory_seq_rm(self._memory, target, -1, -1)
        # Of a model with a state instead of cells only the whole can be copied.
        llama_cpp.llama_memory_seq_cp(self._memory, source, target, -1, keep if self.can_rewind else -1)
        return self.can_rewind or self.trim(target, keep)

    def _explain(self, path: str) -> Unusable:
        """Why the model couldn't be loaded, by what llama.cpp said."""
        name = os.path.basename(path)
        said = " ".join(self._log.grave)
        why = next(iter(self._log.grave), "no reason given")
        if "unknown model architecture" in said:
            return Unusable(f"{name}: its architecture isn't known to this llama.cpp ({why[-200:]})", UPDATE)
        if any(each in said for each in ("not within the file bounds", "corrupt", "failed to read", "is not within")):
            return Unusable(f"{name} is truncated or damaged", "get the file again")
        if any(each in said for each in ("alloc", "out of memory", "insufficient memory")):
            return Unusable("there isn't enough memory for this model", "choose a smaller model or quantisation")
        return Unusable(f"llama.cpp can't load {name}: {why[-200:]}", "choose another model: `swarmtui models`")


class LlamaVocabulary:
    """The model's tokens; satisfies `decoder.Vocabulary`."""

    def __init__(self, vocab: Any) -> None:
        self._vocab = vocab
        self.size = int(llama_cpp.llama_vocab_n_tokens(vocab))
        self.add_start = bool(llama_cpp.llama_vocab_get_add_bos(vocab))
        self.start = int(llama_cpp.llama_vocab_bos(vocab))
        self._pieces: dict[int, bytes] = {}
        self._spaced = llama_cpp.llama_vocab_type(vocab) == SPM
        self._break = self._tokenise("\n", False) if self._spaced else []
        self._known: dict[str, list[int]] = {}

    def tokens(self, text: str) -> list[int]:
        """Tokens of text that goes on after other text. Short ones are remembered: skeletons come again and again."""
        if len(text) > 80:
            return self._continued(text)
        if text not in self._known:
            if len(self._known) > 5_000:
                self._known.clear()
            self._known[text] = self._continued(text)
        return self._known[text]

    def template_tokens(self, text: str) -> list[int]:
        """Tokens of a piece of a chat template, special ones included."""
        return self._tokenise(text, True) if text else []

    def piece(self, token: int) -> bytes:
        """The bytes of a token; b'' for control tokens."""
        if token not in self._pieces:
            end = llama_cpp.llama_vocab_is_eog(self._vocab, token) or llama_cpp.llama_vocab_is_control(
                self._vocab, token
            )
            buffer = ctypes.create_string_buffer(256)
            length = 0 if end else llama_cpp.llama_token_to_piece(self._vocab, token, buffer, 256, 0, False)
            self._pieces[token] = buffer.raw[: max(0, length)]
        return self._pieces[token]

    def text_of(self, token: int) -> str:
        """How a (special) token is written in templates; '' for none."""
        text = llama_cpp.llama_vocab_get_text(self._vocab, token) if token >= 0 else b""
        return text.decode("utf-8", "replace") if text else ""

    @property
    def end(self) -> int:
        """The end token."""
        return int(llama_cpp.llama_vocab_eos(self._vocab))

    def _continued(self, text: str) -> list[int]:
        if not text:
            return []
        if self._spaced:
            tokens = self._tokenise("\n" + text, False)
            if tokens[: len(self._break)] == self._break:
                return tokens[len(self._break) :]
        return self._tokenise(text, False)

    def _tokenise(self, text: str, special: bool) -> list[int]:
        data = text.encode("utf-8", "replace")
        room = len(data) + 8
        buffer = (llama_cpp.llama_token * room)()
        count = llama_cpp.llama_tokenize(self._vocab, data, len(data), buffer, room, False, special)
        return list(buffer[: max(0, count)])
