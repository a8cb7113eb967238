package config

import (
	"slices"
	"strings"
	"time"

	"tutti/internal/base/setting"
	"tutti/internal/base/spelling"
	"tutti/internal/report/alert"
)

const (
	// maxAlerts bounds the size of the state that is kept for them.
	maxAlerts = 16
	// minAlertInterval keeps a receiver from being flooded.
	minAlertInterval = 10 * time.Second
)

// Alert is one receiver of messages about failures.
type Alert struct {
	// URL receives each message. It is a secret, because those of Slack and others contain a key.
	URL    setting.Secret
	Format alert.Format
	// Events and Repositories select what is sent; empty for all.
	Events       []string
	Repositories []string
	// MinInterval is the shortest time between two messages about the same kind of event.
	MinInterval time.Duration
	// Token is sent as a bearer token, Secret is the key of the message's signature; empty for none.
	Token, Secret setting.Secret
	TLS           ClientTLS
}

func (c *Config) alertKeys() [][]setting.Key {
	each := make([][]setting.Key, len(c.Alerts))
	for i := range c.Alerts {
		each[i] = c.Alerts[i].keys()
	}
	return each
}

func (a *Alert) keys() []setting.Key {
	var events []string
	for _, kind := range alert.Kinds() {
		events = append(events, string(kind))
	}
	formats := []string{string(alert.FormatJSON), string(alert.FormatSlack)}
	return append([]setting.Key{
		setting.SecretText("url", &a.URL, "URL that receives each message with POST, http or https; required."),
		setting.Text("format", (*string)(&a.Format), formats[0], "Form of a message: json, or slack for one of Slack's incoming webhooks.").OneOf(formats...),
		setting.List("events", &a.Events, nil, "Kinds of events: "+strings.Join(events, ", ")+"; empty for all.").
			Matching("^("+strings.Join(events, "|")+")$", "one of "+strings.Join(events, ", ")),
		setting.List("repositories", &a.Repositories, nil, "Codes of repositories; empty for all."),
		setting.Duration("minInterval", &a.MinInterval, 5*time.Minute,
			"Shortest time between two messages about the same kind of event, at least 10s; events in between are summed up."),
		setting.SecretText("token", &a.Token, "Bearer token for the URL."),
		setting.SecretText("secret", &a.Secret, "Key of the signature X-Signature-256 of each message; empty for none."),
	}, a.TLS.keys()...)
}

func (c *Config) validateAlerts(given *setting.Node, f *setting.ErrorList) {
	if n := len(c.Alerts); n > maxAlerts {
		f.Add("alerts", "", "", "has %d entries, the limit is %d", n, maxAlerts)
	}
	for i, a := range c.Alerts {
		at, item := setting.Indexed("alerts", i), given.Item(i)
		switch set := item.IsSet("url") || item.IsSet("urlFile"); {
		case a.URL == "" && !set:
			f.Add(at+".url", "", "such as https://hooks.example.org/tutti, or urlFile with a file that contains it", "is missing")
		case a.URL != "" && !absoluteHTTP(a.URL.Reveal()):
			f.Add(at+".url", sourceOf(item, "url"), "such as https://hooks.example.org/tutti", "is not an absolute http or https URL")
		}
		a.TLS.validate(at, f)
		if a.MinInterval > 0 && a.MinInterval < minAlertInterval {
			f.Add(at+".minInterval", sourceOf(item, "minInterval"), "", "must be at least 10s, not %s", a.MinInterval)
		}
		if a.Format == alert.FormatSlack && a.Secret != "" {
			f.Add(at+".secret", "", "remove it", "has no effect with format slack: Slack checks no signature")
		}
		for n, code := range a.Repositories {
			c.validateAlertRepository(setting.Indexed(at+".repositories", n), code, f)
		}
	}
}

// validateAlertRepository reports a repository that is not configured.
func (c *Config) validateAlertRepository(at, code string, f *setting.ErrorList) {
	codes := make([]string, len(c.Repositories))
	for i, r := range c.Repositories {
		codes[i] = r.Code
	}
	if slices.Contains(codes, code) || code == "" {
		return
	}
	hint := ""
	if meant := spelling.Suggest(code, slices.Values(codes)); meant != "" {
		hint = "did you mean " + meant + "?"
	}
	f.Add(at, "", hint, "%q is not the code of a repository", code)
}
