package migrate

import (
	"net"
	"strconv"
	"strings"

	"tutti/internal/base/setting"
	"tutti/internal/config/foreign"
)

// text sets the key as it is.
func text(m *migration, v variable, to string) bool { return m.set(to, v.value, v) }

// port sets the address of the server: tutti has one for everything. Without tokens only this machine may reach it.
func port(m *migration, v variable, to string) bool {
	host := "127.0.0.1"
	if m.tokens() {
		host = "0.0.0.0"
	}
	return m.set(to, net.JoinHostPort(host, v.value), v)
}

// timeouts sets the timeout of every repository from a number of seconds.
func timeouts(m *migration, v variable, to string) bool {
	set := false
	for i := range m.repositories() {
		set = m.set(strings.ReplaceAll(to, "#", strconv.Itoa(i)), v.value+"s", v) || set
	}
	return set
}

// level sets the level of a Spring program.
func level(m *migration, v variable, to string) bool {
	switch level := strings.ToLower(v.value); level {
	case "trace":
		return m.set(to, "debug", v)
	case "debug", "info", "warn", "error":
		return m.set(to, level, v)
	default:
		return false
	}
}

// debug sets the level debug.
func debug(m *migration, v variable, to string) bool {
	return v.value == "true" && m.set(to, "debug", v)
}

// excluded reports whether a repository has the ids of an exclusion rule, which internal/config reads. If none has, it warns.
func excluded(m *migration, v variable, _ string) bool {
	list, _ := foreign.MaestroExclusion(v.name)
	for path := range m.origin {
		if list != "" && strings.HasSuffix(path, ".exclude."+list) {
			return true
		}
	}
	m.warn("%s: %s is %s, and what it excludes would be indexed: set exclude of the repositories", m.product, v, masked(v.value))
	return false
}

// songID sets the code of the built-in repository, which replaces Song when no repository is configured.
func songID(m *migration, v variable, to string) bool {
	if count := m.repositories(); count > 0 {
		set := values(m.foreign)
		for i := range count {
			if set[setting.Indexed("repositories", i)+".code"] == v.value {
				return false
			}
		}
		m.warn("Song: %s is %s, but no repository has this code: notifications of this Song are ignored", v, v.value)
		return false
	}
	m.set(to, v.value, v)
	m.foreign.Set("repositories[0].type", "local")
	m.foreign.Set("repositories[0].indexName", "analyses")
	m.origin["repositories[0].type"] = "the built-in repository, which replaces Song"
	m.origin["repositories[0].indexName"] = "the default"
	return true
}
