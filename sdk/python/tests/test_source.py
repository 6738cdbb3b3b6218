"""The package: for Python 3.9 and newer, its metadata, its types, and a README whose examples run."""

import ast
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import sysconfig
import types
import typing
import urllib.request

from service import BOUND, SDK, ServiceTest, url

import paddock.aio

SOURCES = {path.name: path.read_text() for path in (SDK / "paddock").glob("*.py")}
README = (SDK / "README.md").read_text()


class Source(ServiceTest):
    def test_it_is_python_3_9(self):
        for source in SOURCES.values():
            ast.parse(source, feature_version=(3, 9))

    def test_it_needs_only_the_standard_library(self):
        stdlib = pathlib.Path(sysconfig.get_path("stdlib")).resolve()
        names = set()
        for source in SOURCES.values():
            for node in ast.walk(ast.parse(source)):
                names |= {a.name for a in node.names} if isinstance(node, ast.Import) else set()
                names |= {node.module} if isinstance(node, ast.ImportFrom) and not node.level else set()
        for name in names - set(sys.builtin_module_names) - {"typing_extensions"}:  # which only type checkers read
            origin = pathlib.Path(importlib.util.find_spec(name).origin or "")
            self.assertTrue(str(origin) in ("frozen", "built-in") or stdlib in origin.resolve().parents, name)

    def test_it_stays_small(self):
        for file, source in SOURCES.items():
            self.assertLess(len(source.splitlines()), 420, file)
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.FunctionDef):
                    self.assertLess(node.end_lineno - node.lineno, 65, node.name)

    def test_all_is_what_is_public(self):
        for module in (paddock, paddock.aio):
            public = {name for name, value in vars(module).items() if not name.startswith("_") and not isinstance(value, types.ModuleType)
                      and (module is paddock or getattr(value, "__module__", "") == "paddock.aio" and not isinstance(value, typing.TypeVar))}
            self.assertEqual(public, set(module.__all__) - {"__version__"}, module)

    def test_the_answers_are_those_of_the_service(self):
        with urllib.request.urlopen(url() + "/openapi.json", timeout=BOUND) as response:
            schemas = json.load(response)["components"]["schemas"]
        checked = []
        for name in paddock.__all__:
            kind = getattr(paddock, name)
            if not (isinstance(kind, type) and issubclass(kind, dict)):
                continue
            schema = schemas[name]
            self.assertEqual(set(kind.__annotations__), set(schema["properties"]), name)
            optional = {member for member, kind_of in kind.__annotations__.items() if kind_of.__forward_arg__.startswith("NotRequired")}
            self.assertEqual(set(kind.__annotations__) - optional, set(schema["required"]), name)
            checked.append(name)
        self.assertGreater(len(checked), 20)

    def test_its_version_is_the_package_version(self):
        attribute = re.search(r'^version = \{ attr = "paddock\.(\w+)\.(\w+)" \}', (SDK / "pyproject.toml").read_text(), re.MULTILINE)
        module = importlib.import_module("paddock." + attribute[1])
        self.assertEqual(getattr(module, attribute[2]), paddock.__version__)

    def test_its_types_and_licence_are_included(self):
        self.assertTrue((SDK / "paddock/py.typed").exists())
        self.assertEqual((SDK / "LICENSE").read_text(), (SDK.parent.parent / "LICENSE").read_text())
        metadata = (SDK / "pyproject.toml").read_text()
        for key in ("license", "authors", "classifiers", "requires-python", "readme", "project.urls", 'paddock = ["py.typed"]'):
            self.assertIn(key, metadata)

    def test_the_readme_documents_every_error_and_option(self):
        documented = set(re.findall(r"`([A-Za-z_]+)`", README))
        classes = {name for name, value in vars(paddock).items() if isinstance(value, type) and issubclass(value, paddock.PaddockError)}
        self.assertLessEqual(classes, documented)
        for guard in (paddock.Paddock.hold, paddock.Paddock.hold_session):
            self.assertLessEqual(set(guard.__kwdefaults__), documented)

    def test_the_readme_examples_run(self):
        examples = re.findall(r"```python\n# ([a-z_]+\.py)\n(.*?)```", README, re.DOTALL)
        self.assertGreaterEqual(len(examples), 3)
        for title, code in examples:
            with self.subTest(title):
                code = code.replace("http://127.0.0.1:8080", url())
                done = subprocess.run([sys.executable, "-c", code], cwd=SDK, capture_output=True, text=True, timeout=BOUND)
                self.assertEqual((done.returncode, done.stderr), (0, ""), code)
