package config

import (
	"tutti/internal/core"
)

// Code and index of the built-in repository when no repository is configured.
const (
	localCode  = "local"
	localIndex = "analyses"
)

// namesRepository reports whether root has a list of repositories, or an invalid value of that key.
func namesRepository(root *node) bool {
	given := root.member("repositories")
	return given != nil && (given.kind != kindList || len(given.items) > 0)
}

// addLocal adds the built-in repository to root when no repository is configured.
func addLocal(root *node) {
	if namesRepository(root) {
		return
	}
	local := newObject("")
	for _, member := range [][2]string{{"code", localCode}, {"type", string(core.TypeLocal)}, {"indexName", localIndex}} {
		local.set(member[0], &node{kind: kindScalar, text: member[1]})
	}
	root.set("repositories", &node{kind: kindList, items: []*node{local}})
}

// validateLocal reports keys that apply only to remote repositories. Defaults are ignored, as in validateType.
func (r Repository) validateLocal(at string, f *errorList) {
	defaults, n := DefaultRepository(), r.Notifications
	for _, k := range []struct {
		name  string
		given bool
	}{
		{"url", r.URL != ""},
		{"token", r.Token != ""},
		{"username", r.Username != ""},
		{"password", r.Password != ""},
		{"timeout", r.Timeout != 0 && r.Timeout != defaults.Timeout},
		{"notifications", len(n.Kafka.Brokers) > 0 || n.Kafka.Topic != "" || n.Webhook.Secret != "" ||
			n.Kafka.Group != "" && n.Kafka.Group != defaults.Notifications.Kafka.Group},
	} {
		if k.given {
			f.add(at+"."+k.name, "", "remove it: the built-in repository is in the same process, and reports its changes itself",
				"does not apply to type %s", r.Type)
		}
	}
	for i, state := range r.Song.States {
		if state != "" && !core.AnalysisState(state).Valid() {
			f.add(indexed(at+".song.states", i), "", "use PUBLISHED, UNPUBLISHED or SUPPRESSED", "%q is not a state of the built-in repository", state)
		}
	}
}
