#!/usr/bin/env python3
"""Asks a running `bevatron serve` with OpenAI's Python package, as programs written for it do.

    tools/check_server.py [--url http://127.0.0.1:8000] [--key KEY]

Needs the package openai. Prints a line for each property; exit status 1 when one does not hold.
"""
import argparse
import math
import sys

import openai

FAILED = []


def check(name, holds, seen=""):
    print(f"{'ok    ' if holds else 'FAILED'}  {name}" + ("" if holds else f": {seen}"))
    if not holds:
        FAILED.append(name)


def refused(name, kind, call, text=""):
    try:
        call()
    except kind as error:
        check(name, text in str(error), str(error))
    except Exception as error:  # any other is a finding as well
        check(name, False, repr(error))
    else:
        check(name, False, "nothing was refused")


def check_models(client):
    models = client.models.list().data
    check("one model is listed", len(models) == 1, models)
    name = models[0].id
    check("it can be asked for by its name", client.models.retrieve(name).id == name)
    refused("another one is not found", openai.NotFoundError, lambda: client.models.retrieve("no-such-model"))
    return name


def check_completions(client, model):
    def complete(**fields):
        return client.completions.create(**{"model": model, "prompt": "The", "max_tokens": 8, "seed": 5, **fields})

    whole = complete()
    check("a completion has a text", len(whole.choices) == 1 and len(whole.choices[0].text) > 0, whole)
    check("the usage adds up",
          whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens, whole.usage)
    check("it ended for a reason", whole.choices[0].finish_reason in ("stop", "length"), whole.choices[0])
    check("the same seed gives the same text", complete().choices[0].text == whole.choices[0].text)
    check("temperature 0 does not depend on the seed",
          complete(temperature=0, seed=1).choices[0].text == complete(temperature=0, seed=2).choices[0].text)
    check("echo puts the prompt in front", complete(echo=True).choices[0].text == "The" + whole.choices[0].text)

    several = complete(prompt=["The", "A"], n=3)
    check("two prompts, three times each, are six choices", [c.index for c in several.choices] == list(range(6)))
    check("a text does not depend on those beside it", several.choices[0].text == whole.choices[0].text)

    first = whole.choices[0].text
    cut = first[len(first) // 2:][:2]
    stopped = complete(stop=[cut]).choices[0]
    check("a stop string ends the text before it",
          stopped.finish_reason == "stop" and stopped.text == first[:first.index(cut)], (cut, first, stopped))

    extended = complete(extra_body={"top_k": 1, "min_p": 0.5, "repetition_penalty": 1.0})
    check("top_k 1 is the likeliest, as temperature 0",
          extended.choices[0].text == complete(temperature=0).choices[0].text)


def check_streams(client, model):
    fields = {"model": model, "prompt": "The", "max_tokens": 8, "seed": 5}
    whole = client.completions.create(**fields)
    chunks = list(client.completions.create(**fields, stream=True, stream_options={"include_usage": True}))
    text = "".join(choice.text for chunk in chunks for choice in chunk.choices)
    check("a stream has the text of the whole", text == whole.choices[0].text, (text, whole))
    check("its last choice says why it ended",
          [c.finish_reason for k in chunks for c in k.choices][-1] == whole.choices[0].finish_reason)
    check("its last chunk has the usage", chunks[-1].usage == whole.usage, chunks[-1])
    stream = client.completions.create(**{**fields, "max_tokens": 64}, stream=True)
    next(iter(stream))
    stream.close()
    check("a stream that is left early harms nobody", client.completions.create(**fields) is not None)


def check_logprobs(client, model):
    reply = client.completions.create(model=model, prompt="The", max_tokens=5, temperature=0, logprobs=3, echo=True)
    choice, lists = reply.choices[0], reply.choices[0].logprobs
    check("there is a number for each token but the first",
          lists.token_logprobs[0] is None and all(p <= 0 for p in lists.token_logprobs[1:]), lists)
    check("the tokens are the text", "".join(lists.tokens) == choice.text, (lists.tokens, choice.text))
    check("the offsets are where the tokens begin",
          all(choice.text[o:].startswith(t) for o, t in zip(lists.text_offset, lists.tokens)), lists)
    made = reply.usage.completion_tokens
    chosen = lists.token_logprobs[-made:]
    best = [max(top.values()) for top in lists.top_logprobs[-made:]]
    check("at temperature 0 the chosen token is the likeliest",
          all(abs(a - b) < 1e-3 for a, b in zip(chosen, best)), (chosen, best))
    check("probabilities are at most 1 together",
          all(sum(map(math.exp, top.values())) < 1.001 for top in lists.top_logprobs[-made:]))


def check_errors(client, model):
    def complete(**fields):
        return lambda: client.completions.create(**{"model": model, "prompt": "The", "max_tokens": 4, **fields})

    refused("a wrong temperature is refused", openai.BadRequestError, complete(temperature=-1), "temperature")
    refused("an unknown field is refused", openai.BadRequestError, complete(extra_body={"topk": 1}), "topk")
    refused("what is not there is refused", openai.BadRequestError, complete(presence_penalty=1), "presence_penalty")
    refused("a prompt that is too long is refused", openai.BadRequestError, complete(prompt="The " * 100000))
    refused("an unknown model is not found", openai.NotFoundError, complete(model="no-such-model"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--key", default="none")
    options = parser.parse_args()
    client = openai.OpenAI(base_url=options.url + "/v1", api_key=options.key, max_retries=0, timeout=60)
    model = check_models(client)
    check_completions(client, model)
    check_streams(client, model)
    check_logprobs(client, model)
    check_errors(client, model)
    print(f"openai {openai.__version__}: {'all hold' if not FAILED else str(len(FAILED)) + ' do not hold'}")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
