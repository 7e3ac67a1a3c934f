"""A service in Go with gomemcache."""

import re
import shutil
import subprocess

from recipe import ROOT, Recipe, printed
from service import PORT, tried

# The module whose requirements name the client.
MODULE = ROOT / "tests/clients/go"


class Tried(Recipe):
    needs = ((("go", "version"), "golang-go"),)

    def fetch(self):
        self.call("go", "mod", "download", "-C", MODULE)

    def version(self):
        client = re.search(r"gomemcache (\S+)", (MODULE / "go.mod").read_text())
        return f"{printed('go', 'env', 'GOVERSION')}, gomemcache {client[1]}"

    def run(self, stand):
        for path in (MODULE / "go.mod", MODULE / "go.sum", self.here / "database.go"):
            shutil.copy(path, stand.folder)
        subprocess.run(["go", "vet", "./..."], cwd=stand.folder, check=True)
        subprocess.run(["go", "build", "-o", "service", "."], cwd=stand.folder, check=True)
        stand.spawn("./service", port=PORT)
        tried(stand)
