"""Signatures: who has issued a receipt.

The digest in a receipt protects against accidents: anybody can edit a receipt and compute it again. An ed25519
signature of that digest cannot be made without the private key. Keys are files that OpenSSL reads and writes too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from reprl.artifacts.folder import RECEIPT, SIGNATURE, find_file, load_run
from reprl.artifacts.receipt import Receipt
from reprl.artifacts.search import SearchReceipt
from reprl.errors import DocumentError, InputError, quote
from reprl.storage.documents import decode, load, pretty, stated_format
from reprl.storage.fields import SHA256, Kind, checked, declared, read_fields
from reprl.storage.files import read_bounded, write_atomic

FORMAT, VERSION = "reprl-signature", 1
SEAL = "its digest protects against accidents, not against forgery: anybody can edit a receipt and compute it again"
_SIGNED: Kind = checked(
    "128 hexadecimal digits", lambda x: isinstance(x, str) and len(x) == 128 and not set(x) - set("0123456789abcdef")
)


class Signature(NamedTuple):
    """A signature of a receipt."""

    receipt: Annotated[str, SHA256]
    """Digest of the receipt."""
    public_key: Annotated[str, SHA256]
    """The ed25519 key, 32 bytes in hexadecimal digits: publish it where others will look for it."""
    signature: Annotated[str, _SIGNED]

    def save(self, path: Path) -> Path:
        """Write the document."""
        return write_atomic(path, pretty({"format": FORMAT, "version": VERSION, **self._asdict()}).encode())


class Signed(NamedTuple):
    """What is known of the signature of a run."""

    public_key: str | None
    """None where there is no signature."""
    trouble: str = ""
    """Why it does not hold; empty if it does, or if there is none."""

    def __str__(self) -> str:
        if self.public_key is None:
            return f"not signed; {SEAL}"
        return f"NOT VALID: {self.trouble}" if self.trouble else f"valid, by the key {self.public_key}"


def sign_run(directory: str | os.PathLike[str], key: str | os.PathLike[str] | Any) -> Signature:
    """Sign the receipt of a run folder, and write signature.json beside it.

    key is a file with an ed25519 private key (PEM), or such a key.
    """
    private: Any = key if hasattr(key, "sign") else load_private_key(key)
    digest = load_run(directory).receipt.digest
    public = private.public_key().public_bytes_raw().hex()
    made = Signature(digest, public, private.sign(_message(digest)).hex())
    made.save(Path(directory) / SIGNATURE)
    return made


def new_key(path: str | os.PathLike[str]) -> str:
    """Write a fresh private key to a file that only its owner may read, and return the public key."""
    library = _library()
    private = library.ed25519.Ed25519PrivateKey.generate()
    kinds = library.serialization
    text = private.private_bytes(kinds.Encoding.PEM, kinds.PrivateFormat.PKCS8, kinds.NoEncryption())
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputError(f"a new key must go to a file that is not there yet, got {os.fspath(path)}") from None
    with os.fdopen(handle, "wb") as file:
        file.write(text)
    return str(private.public_key().public_bytes_raw().hex())


def load_private_key(path: str | os.PathLike[str]) -> Any:
    """Read an ed25519 private key."""
    library, text = _library(), read_bounded(path, 1 << 16)
    try:
        found = library.serialization.load_pem_private_key(text, None)
    except Exception:  # whatever the library finds wrong with it
        found = None
    if not isinstance(found, library.ed25519.Ed25519PrivateKey):
        raise InputError(f"a key file must hold an ed25519 private key in PEM without a password, got {path}")
    return found


def check_signature(path: str | os.PathLike[str]) -> Signed:
    """Check the signature of a run folder, or of a receipt that it lies beside.

    Guarantee:
        Without trouble, whoever has the private key of `public_key` has signed this very receipt; whose key it is, only
        its owner can say.
    """
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    place = folder / SIGNATURE
    if not place.is_file():
        return Signed(None)
    found = load(place, _read)
    digest = _digest(find_file(folder, RECEIPT))
    if found.receipt != digest:
        return Signed(found.public_key, "it is of another receipt")
    library = _library()
    try:
        public = library.ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(found.public_key))
        public.verify(bytes.fromhex(found.signature), _message(digest))
    except (library.InvalidSignature, ValueError):
        return Signed(found.public_key, "it was not made with the key that it names")
    return Signed(found.public_key)


def read_public_key(text: str) -> str:
    """Return a public key in hexadecimal digits: given so, or in a file (PEM, or those digits)."""
    if Path(text).is_file():
        content = read_bounded(Path(text), 1 << 16)
        if content.startswith(b"-----"):
            library = _library()
            try:
                key = library.serialization.load_pem_public_key(content)
                return str(key.public_bytes_raw().hex())
            except Exception:
                raise InputError(f"a signer must be an ed25519 public key, got the file {text}") from None
        text = content.decode("ascii", "replace").strip()
    if len(text) != 64 or set(text) - set("0123456789abcdef"):
        raise InputError(f"a signer must be a public key of 64 hexadecimal digits, or a file, got {quote(text)}")
    return text


def _message(digest: str) -> bytes:
    return f"{FORMAT} {VERSION}\n{digest}\n".encode()


def _digest(path: Path) -> str:
    """The digest of a receipt of either kind; one that does not match its content is refused."""
    search = stated_format(decode(read_bounded(path), str(path))) == "reprl-search-receipt"
    return SearchReceipt.load(path).digest if search else Receipt.load(path).digest


def _read(text: bytes) -> Signature:
    document = decode(text, "signature")
    if stated_format(document) != FORMAT or document.get("version") != VERSION:
        raise DocumentError(f"signature must have format {FORMAT!r} and version {VERSION}, got {quote(document)}")
    body = {name: value for name, value in document.items() if name not in ("format", "version")}
    return Signature(**read_fields("signature", body, declared(Signature)))


class _Library(NamedTuple):
    ed25519: Any
    serialization: Any
    InvalidSignature: Any


def _library() -> _Library:
    """Return what signs, or say how to get it."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise InputError("signatures need the package cryptography: pip install '.[sign]', got none") from None
    return _Library(ed25519, serialization, InvalidSignature)
