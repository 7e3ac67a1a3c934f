"""A service in Node.js with memjs."""

import json
import shutil

from recipe import ROOT, Recipe, printed
from service import PORT, tried

# What pins the client, and where the client tests have it.
PINS = ROOT / "tests/clients/node"
BUILT = ROOT / ".clients/node/node_modules"


class Tried(Recipe):
    needs = ((("node", "--version"), "nodejs"), (("npm", "--version"), "npm"))

    @property
    def modules(self):
        return BUILT if BUILT.exists() else self.fetched / "node_modules"

    def fetch_once(self, may_install=False):
        if not BUILT.exists():
            super().fetch_once(may_install)

    def fetch(self):
        for name in ("package.json", "package-lock.json"):
            shutil.copy(PINS / name, self.fetched)
        self.call("npm", "ci", "--no-audit", "--no-fund", "--silent")

    def version(self):
        client = json.loads((self.modules / "memjs/package.json").read_text())
        return f"Node.js {printed('node', '--version')}, memjs {client['version']}"

    def run(self, stand):
        shutil.copy(self.here / "database.js", stand.folder)
        stand.spawn("node", "service.js", port=PORT, env={"NODE_PATH": str(self.modules)})
        tried(stand)
