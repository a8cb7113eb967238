package external

import (
	"net/url"
	"strings"
	"testing"
)

func TestTemplate(t *testing.T) {
	for _, c := range []struct{ template, want string }{
		{"http://a/{value}", ""},
		{"https://a.example:8443/x?y={value}&s={study}", ""},
		{"HTTP://a?v={value}", ""},
		{"http://[::1]/{value}", ""},
		{"http://a/no-token", ""},
		{"ftp://a/{value}", "is not an absolute http or https URL"},
		{"//a/{value}", "is not an absolute http or https URL"},
		{"http:///{value}", "is not an absolute http or https URL"},
		{"http://a:x/{value}", "is not an absolute http or https URL"},
		{"http://a/%zz", "is not an absolute http or https URL"},
		{"http://{value}/", "has a token in its host; only path and query may have one"},
		{"http://a:{value}/", "has a token in its host; only path and query may have one"},
		{"http://u:p@a/{value}", "has a user or a password, which everyone who can read the type would see"},
		{"http://a/{Value}", `has the token "{Value}"; only {study} and {value} are replaced`},
		{"http://a/{value", "has a brace that belongs to neither {study} nor {value}"},
		{"http://a/{value}}", "has a brace that belongs to neither {study} nor {value}"},
		{"http://a/{{value}}", "has a brace that belongs to neither {study} nor {value}"},
		{"http://a/#{value}", "has a fragment, which is never sent"},
		{"http://a/ {value}", "has white space, a control character or a backslash"},
		{`http://a\b/{value}`, "has white space, a control character or a backslash"},
	} {
		t.Run(c.template, func(t *testing.T) {
			_, err := parseTemplate(c.template)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"http://a/{value}", "https://a.example/x/{study}?v={value}", "http://a/.{value}", "http://a?{study}", "http://a/{x}"} {
		f.Add(seed, "S1", "..")
		f.Add(seed, "a/b", "x?y#z&{study}%2e")
	}
	f.Fuzz(func(t *testing.T, template, study, value string) {
		parsed, err := parseTemplate(template)
		if err != nil {
			return
		}
		plain, err := parsed.fill("s", "v")
		if err != nil {
			return
		}
		filled, err := parsed.fill(study, value)
		if err != nil {
			return
		}
		want, err := url.Parse(plain)
		if err != nil {
			t.Fatalf("%q returns %q, which is no URL: %v", template, plain, err)
		}
		got, err := url.Parse(filled)
		if err != nil {
			t.Fatalf("%q returns %q, which is no URL: %v", template, filled, err)
		}
		if got.Scheme != want.Scheme || got.Host != want.Host || got.User != nil || got.Fragment != "" {
			t.Errorf("%q with %q and %q asks %q", template, study, value, filled)
		}
		if strings.Count(got.EscapedPath(), "/") != strings.Count(want.EscapedPath(), "/") {
			t.Errorf("%q with %q and %q has another path: %q", template, study, value, filled)
		}
		joined, _ := url.JoinPath(filled)
		clean, _ := url.Parse(joined)
		before, _ := url.JoinPath(plain)
		cleanBefore, _ := url.Parse(before)
		if clean != nil && cleanBefore != nil && strings.Count(clean.EscapedPath(), "/") != strings.Count(cleanBefore.EscapedPath(), "/") {
			t.Errorf("%q with %q and %q climbs: %q", template, study, value, filled)
		}
	})
}
