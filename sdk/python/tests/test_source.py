"""The package: one module for Python 3.9 and newer, its metadata, and a README whose examples run."""

import ast
import importlib.util
import pathlib
import re
import subprocess
import sys
import sysconfig

from service import BOUND, SDK, ServiceTest, url

import paddock

SOURCE = (SDK / "paddock/__init__.py").read_text()
README = (SDK / "README.md").read_text()


class Source(ServiceTest):
    def test_it_is_python_3_9(self):
        ast.parse(SOURCE, feature_version=(3, 9))

    def test_it_needs_only_the_standard_library(self):
        stdlib = pathlib.Path(sysconfig.get_path("stdlib")).resolve()
        imports = [n for n in ast.walk(ast.parse(SOURCE)) if isinstance(n, (ast.Import, ast.ImportFrom))]
        names = {a.name for n in imports if isinstance(n, ast.Import) for a in n.names}
        names |= {n.module for n in imports if isinstance(n, ast.ImportFrom)}
        for name in names - set(sys.builtin_module_names):
            origin = pathlib.Path(importlib.util.find_spec(name).origin or "")
            self.assertTrue(str(origin) in ("frozen", "built-in") or stdlib in origin.resolve().parents, name)

    def test_it_stays_small(self):
        self.assertLess(len(SOURCE.splitlines()), 1300)
        for node in ast.walk(ast.parse(SOURCE)):
            if isinstance(node, ast.FunctionDef):
                self.assertLess(node.end_lineno - node.lineno, 50, node.name)

    def test_its_version_is_the_package_version(self):
        self.assertIn(f'version = "{paddock.__version__}"', (SDK / "pyproject.toml").read_text())

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
