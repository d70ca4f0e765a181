"""Train a tiny BERT with the Transformers Trainer to distinguish praise from blame.

The script generates the sentences, the tokenizer and the model, so nothing is downloaded. It takes every
option of TrainingArguments (`--num_train_epochs 5`, `--bf16`, …). If it is started once per process, pass
the local rank: `--local_rank $LOCAL_RANK`; under torchrun this is not needed. If MLflow's client is
installed, the Trainer logs with it to this run.
"""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import importlib.util
import json
import pathlib
import random

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    HfArgumentParser,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

GOOD, BAD = ("good", "fine", "great", "clever", "moving"), ("bad", "dull", "poor", "silly", "empty")
THINGS, FRAMES = (
    ("film", "book", "song", "plot", "ending"),
    ("the {} was {} {}", "i found the {} {} {}", "what a {} {} {}"),
)
LENGTH = 12


def make_sentences(count: int, seed: int) -> list[tuple[str, int]]:
    """Sentences with their label (praise or not); "not" inverts the meaning, so no word alone decides."""
    choose = random.Random(seed)
    made = []
    for _ in range(count):
        praises, negated = choose.random() < 0.5, choose.random() < 0.25
        word = choose.choice(GOOD if praises != negated else BAD)
        adverb = "not" if negated else choose.choice(("very", "really", "quite"))
        made.append((choose.choice(FRAMES).format(choose.choice(THINGS), adverb, word), int(praises)))
    return made


def make_tokenizer() -> PreTrainedTokenizerFast:
    words = {word for sentence, _ in make_sentences(2000, seed=0) for word in sentence.split()}
    vocabulary = {word: index for index, word in enumerate(("[PAD]", "[UNK]", *sorted(words)))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]")


def make_data(tokenizer: PreTrainedTokenizerFast, count: int, seed: int) -> list[dict[str, object]]:
    return [
        {
            **tokenizer(sentence, padding="max_length", max_length=LENGTH, return_token_type_ids=False),
            "labels": label,
        }
        for sentence, label in make_sentences(count, seed)
    ]


def accuracy(prediction: object) -> dict[str, float]:
    scores, labels = prediction
    return {"accuracy": float(np.mean(scores.argmax(-1) == labels))}


def main() -> None:
    parser = HfArgumentParser(TrainingArguments)
    can_log = "MLFLOW_TRACKING_URI" in os.environ and importlib.util.find_spec("mlflow") is not None
    parser.set_defaults(
        output_dir="outputs/model",
        num_train_epochs=3,
        per_device_train_batch_size=16,
        learning_rate=1e-3,
        report_to="mlflow" if can_log else "none",
        logging_strategy="epoch",
        eval_strategy="epoch",
        save_strategy="no",
        disable_tqdm=True,
        seed=0,
        ddp_find_unused_parameters=False,
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    (args,) = parser.parse_args_into_dataclasses()
    print(
        f"rank {args.process_index} of {args.world_size} on {args.device}, {args.parallel_mode.value}",
        flush=True,
    )

    tokenizer = make_tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=LENGTH,
        num_labels=2,
        hidden_dropout_prob=0.0,
        pad_token_id=tokenizer.pad_token_id,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=args,
        processing_class=tokenizer,
        compute_metrics=accuracy,
        train_dataset=make_data(tokenizer, 2000, seed=1),
        eval_dataset=make_data(tokenizer, 400, seed=2),
    )
    trainer.train()
    metrics = trainer.evaluate()
    trainer.save_model()
    if trainer.is_world_process_zero():
        pathlib.Path("outputs/metrics.json").write_text(json.dumps(metrics, indent=1))
        print(f"Wrote {args.output_dir}, accuracy {metrics['eval_accuracy']:.1%}", flush=True)


if __name__ == "__main__":
    main()
