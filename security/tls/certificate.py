"""What a broker wants to know of a certificate: whose it is, as Java would say it.

Principals, mapping rules and access lists compare text, so the name must be Java's, to the letter:
`X500Principal.getName()`, RFC 2253 with Java's choice of what is shown in hex. Python gives a
subject without the types of its values, so this reads the DER itself; OpenSSL has verified it by
then.
"""

from __future__ import annotations

from typing import NamedTuple

SEQUENCE, SET, OBJECT_IDENTIFIER = 0x30, 0x31, 0x06
OCTET_STRING, BOOLEAN = 0x04, 0x01
VERSION, EXTENSIONS = 0xA0, 0xA3

KEYWORDS = {
    b"\x55\x04\x03": "CN",
    b"\x55\x04\x06": "C",
    b"\x55\x04\x07": "L",
    b"\x55\x04\x08": "ST",
    b"\x55\x04\x09": "STREET",
    b"\x55\x04\x0a": "O",
    b"\x55\x04\x0b": "OU",
    b"\x09\x92\x26\x89\x93\xf2\x2c\x64\x01\x01": "UID",
    b"\x09\x92\x26\x89\x93\xf2\x2c\x64\x01\x19": "DC",
}
"""Attribute types that RFC 2253 has words for; others are shown as numbers, their values in hex."""

TEXTS = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""Types of values that are shown as text: UTF8String, PrintableString, T61String, IA5String,
GeneralString and BMPString. Java takes the bytes of all of them for UTF-8."""

SUBJECT_ALTERNATIVE_NAME = b"\x55\x1d\x11"
ESCAPED = frozenset(',=+<>#;"\\')


class MalformedCertificate(ValueError):
    """It is not what X.509 says."""


class Element(NamedTuple):
    """One element of DER: its tag, its content, and all of it."""

    tag: int
    content: bytes
    whole: bytes


class CertificateNames(NamedTuple):
    """Whom a certificate is for.

    Attributes:
        subject: its distinguished name, as Java's `X500Principal.getName()` has it.
        alternative_names: each as DER.
    """

    subject: str
    alternative_names: frozenset[bytes]


def certificate_names(der: bytes) -> CertificateNames:
    """Read whom a certificate is for.

    Raises:
        MalformedCertificate: it cannot be read.
    """
    certificate = _only(der, SEQUENCE)
    fields = _elements(_elements(certificate.content)[0].content)
    if fields and fields[0].tag == VERSION:
        fields = fields[1:]
    # serial number, signature algorithm, issuer, validity, subject, key, then what is optional
    if len(fields) < 6 or fields[4].tag != SEQUENCE:
        raise MalformedCertificate("it has no subject")
    extensions = next((field for field in fields[6:] if field.tag == EXTENSIONS), None)
    return CertificateNames(
        _distinguished_name(fields[4]),
        frozenset() if extensions is None else _alternative_names(extensions),
    )


def _elements(data: bytes) -> list[Element]:
    """The elements that follow each other in some bytes."""
    found = []
    position = 0
    while position < len(data):
        end, start = _bounds(data, position)
        found.append(Element(data[position], data[start:end], data[position:end]))
        position = end
    if not found:
        raise MalformedCertificate("an element is empty")
    return found


def _bounds(data: bytes, position: int) -> tuple[int, int]:
    """Where the element at `position` ends, and where its content begins."""
    start = position + 2
    if start > len(data):
        raise MalformedCertificate("it ends within an element")
    length = data[position + 1]
    if length & 0x80:
        count = length & 0x7F
        if not 1 <= count <= 4 or start + count > len(data):
            raise MalformedCertificate("an element has no length")
        length = int.from_bytes(data[start : start + count], "big")
        start += count
    if start + length > len(data):
        raise MalformedCertificate("an element is longer than what it is in")
    return start + length, start


def _only(data: bytes, tag: int) -> Element:
    element = _elements(data)[0]
    if element.tag != tag:
        raise MalformedCertificate(f"an element has tag {element.tag} in place of {tag}")
    return element


def _distinguished_name(name: Element) -> str:
    """The last part first, as RFC 2253 wants it."""
    parts = [] if not name.content else _elements(name.content)
    return ",".join(
        "+".join(_attribute(attribute) for attribute in _elements(part.content))
        for part in reversed(parts)
    )


def _attribute(attribute: Element) -> str:
    fields = _elements(attribute.content)
    if len(fields) != 2 or fields[0].tag != OBJECT_IDENTIFIER:
        raise MalformedCertificate("an attribute of the subject is not a type and a value")
    kind, value = fields
    keyword = KEYWORDS.get(kind.content)
    if keyword is None or value.tag not in TEXTS:
        shown = keyword or _dotted(kind.content)
        return f"{shown}=#{value.whole.hex()}"
    return f"{keyword}={_escaped(value.content.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    """As RFC 2253 has it; spaces only at the two ends."""
    body = text.strip(" \r")
    lead = len(text) - len(text.lstrip(" \r"))
    before, after = text[:lead], text[lead + len(body) :]
    escaped = "".join(f"\\{each}" if each in ESCAPED else each for each in body)
    escaped = escaped.replace("\0", "\\00")
    around = ["".join(f"\\{each}" for each in end) for end in (before, after)]
    return around[0] + escaped + around[1]


def _dotted(identifier: bytes) -> str:
    """An object identifier as numbers with dots."""
    numbers: list[int] = []
    number = 0
    for byte in identifier:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers:
        raise MalformedCertificate("an attribute has no type")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _alternative_names(extensions: Element) -> frozenset[bytes]:
    for extension in _elements(_only(extensions.content, SEQUENCE).content):
        kind, *rest = _elements(extension.content)
        if kind.content == SUBJECT_ALTERNATIVE_NAME and rest:
            names = _only(rest[-1].content, SEQUENCE)
            return frozenset(name.whole for name in _elements(names.content))
    return frozenset()
