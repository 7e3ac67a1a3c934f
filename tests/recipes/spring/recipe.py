"""Spring's @Cacheable over Xmemcached."""

import re
import subprocess

from recipe import NotRun, Recipe


class Tried(Recipe):
    needs = ((("javac", "-version"), "default-jdk-headless"), (("mvn", "--version"), "maven"))

    @property
    def jars(self):
        return f"{self.fetched}/jars/*"

    def fetch(self):
        pins = self.here / "pom.xml"
        self.call("mvn", "-q", "-B", "dependency:copy-dependencies", "-f", pins, f"-DoutputDirectory={self.fetched}/jars")
        if not list(self.fetched.glob("jars/spring-cache-*.jar")):
            raise NotRun("Maven fetched no spring-cache")

    def version(self):
        names = sorted(path.stem for path in self.fetched.glob("jars/*.jar"))
        wanted = (name for name in names if re.match(r"spring-context-\d|spring-cache-\d|xmemcached-\d", name))
        return ", ".join(wanted)

    def run(self, stand):
        sources = [stand.folder / "CacheConfiguration.java", self.here / "Check.java"]
        line = ["javac", "-parameters", "-proc:none", "-cp", self.jars, "-d", stand.folder, *sources]
        compiled = subprocess.run([*map(str, line)], capture_output=True, text=True)
        if stand.check("the configuration compiles", compiled.returncode == 0, compiled.stderr[-300:]):
            stand.script("java", "-cp", f"{self.jars}:{stand.folder}", "Check")
