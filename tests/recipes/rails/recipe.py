"""Rails' cache and its sessions, of Debian's packages."""

from recipe import Recipe, printed

PACKAGES = "ruby ruby-dalli ruby-railties ruby-actionpack ruby-activesupport ruby-connection-pool"
LOADS = "require 'dalli'; require 'rails'; require 'action_controller/railtie'; require 'connection_pool'"


class Tried(Recipe):
    needs = ((("ruby", "-e", LOADS), PACKAGES),)

    def version(self):
        return printed("ruby", "-e", f"{LOADS}; puts \"Rails #{{Rails.version}}, Dalli #{{Dalli::VERSION}}\"")

    def run(self, stand):
        stand.script("ruby", self.here / "check.rb", env={"RAILS_ENV": "production"})
