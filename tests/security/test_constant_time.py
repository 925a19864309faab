"""Secrets are compared in constant time: nowhere by `==`, whose time tells how much was right."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("broker", "client/security", "protocol/sasl", "security", "testing/control")
WORDS = ("password", "proof", "signature", "stored_key", "server_key", "secret", "hmac", "digest")
"""Names that hold one of these are of a secret, or of what proves one."""

PUBLIC = {
    "security/password_encoder.py": ["_java_length(password) != int(fields['passwordLength'])"],
    "protocol/sasl/scram.py": ["len(proof) != len(signature)"],
}
"""Comparisons of what is no secret: of lengths."""

COMPARED = {
    "protocol/sasl/scram.py": "is_proven",
    "security/authenticator/plain.py": "evaluate",
    "client/security/sasl.py": "authenticate",
    "broker/interbroker/registered_brokers.py": "verify",
    "testing/control/server.py": None,
}
"""Where secrets are compared, by hmac.compare_digest: the module, and the function."""


def comparisons(source: str) -> Iterator[str]:
    """Those by `==` or `!=` of something that is called like a secret."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Compare):
            continue
        if not any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops):
            continue
        names = {
            each.id if isinstance(each, ast.Name) else each.attr
            for each in ast.walk(node)
            if isinstance(each, ast.Name | ast.Attribute)
        }
        if any(word in name.lower() for name in names for word in WORDS):
            yield ast.unparse(node)


def test_no_secret_is_compared_by_a_sign_of_equality() -> None:
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if here := list(comparisons(path.read_text(encoding="utf-8"))):
                found[path.relative_to(ROOT).as_posix()] = here
    assert found == PUBLIC


@pytest.mark.parametrize(
    "source", ["given == self.password", "if x.stored_key != y: pass", "hmac.digest(a, b) == c"]
)
def test_the_search_finds_such_comparisons(source: str) -> None:
    assert list(comparisons(source))


@pytest.mark.parametrize("module", COMPARED)
def test_secrets_are_compared_by_what_takes_the_same_time(module: str) -> None:
    tree: ast.AST = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    name = COMPARED[module]
    functions = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and name in (None, node.name)
    ]
    assert any("compare_digest(" in ast.unparse(function) for function in functions)
