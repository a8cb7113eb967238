package config

import (
	"tutti/internal/base/setting"
	"tutti/internal/config/foreign"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/upstream/song"
)

// Code and index of the built-in repository when no repository is configured.
const (
	localCode  = "local"
	localIndex = "analyses"
)

// addLocal adds the built-in repository to root when no repository is configured.
func addLocal(root *setting.Node) {
	if foreign.NamesRepository(root) {
		return
	}
	local := setting.NewObject("")
	for _, member := range [][2]string{{"code", localCode}, {"type", string(core.TypeLocal)}, {"indexName", localIndex}} {
		local.Set(member[0], &setting.Node{Kind: setting.KindScalar, Text: member[1]})
	}
	root.Set("repositories", &setting.Node{Kind: setting.KindList, Items: []*setting.Node{local}})
}

// validateLocal reports keys that apply only to remote repositories. Defaults are ignored, as in validateSections.
func (r Repository) validateLocal(at string, f *setting.ErrorList) {
	defaults, n := DefaultRepository(), r.Notifications
	for _, k := range []struct {
		name  string
		given bool
	}{
		{"url", r.URL != ""},
		{"token", r.Token != ""},
		{"username", r.Username != ""},
		{"password", r.Password != ""},
		{"caFile", r.TLS != (ClientTLS{})},
		{"timeout", r.Timeout != 0 && r.Timeout != defaults.Timeout},
		{"notifications", len(n.Kafka.Brokers) > 0 || n.Kafka.Topic != "" || n.Webhook.Secret != "" ||
			n.Kafka.Group != "" && n.Kafka.Group != defaults.Notifications.Kafka.Group},
	} {
		if k.given {
			f.Add(at+"."+k.name, "", "remove it: the built-in repository is in the same process, and reports its changes itself",
				"does not apply to type %s", r.Type)
		}
	}
	for i, state := range r.Own().(*song.Settings).States {
		if state != "" && !datamodel.AnalysisState(state).Valid() {
			f.Add(setting.Indexed(at+".song.states", i), "", "use PUBLISHED, UNPUBLISHED or SUPPRESSED", "%q is not a state of the built-in repository", state)
		}
	}
}
