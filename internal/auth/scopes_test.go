package auth_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/auth"
	"tutti/internal/core"
)

// TestScopesGrant: the rights that a key's scopes grant, with different scope names.
func TestScopesGrant(t *testing.T) {
	prefixed := auth.Scopes{System: "portal", OrganizationPrefix: "study.", WriteSuffix: ":w", ReadSuffix: ":r"}
	for _, tc := range []struct {
		name          string
		scopes        auth.Scopes
		given         []string
		system        bool
		writes, reads []string
	}{
		{"the system", auth.Scopes{}, []string{"tutti.WRITE"}, true, nil, nil},
		{"an organization", auth.Scopes{}, []string{"S1.WRITE", "S2.READ"}, false, []string{"S1"}, []string{"S2"}},
		{"a write scope does not include reading", auth.Scopes{}, []string{"S1.WRITE"}, false, []string{"S1"}, nil},
		{"the system's name with the read suffix is an organization", auth.Scopes{}, []string{"tutti.READ"}, false, nil, []string{"tutti"}},
		{"different case", auth.Scopes{}, []string{"TUTTI.WRITE", "S1.write"}, false, []string{"TUTTI"}, nil},
		{"an empty organization", auth.Scopes{}, []string{".WRITE", ".READ"}, false, nil, nil},
		{"an unknown scope", auth.Scopes{}, []string{"openid", "WRITE"}, false, nil, nil},
		{"dots in the name", auth.Scopes{}, []string{"a.WRITE.WRITE"}, false, []string{"a.WRITE"}, nil},
		{"a prefix: the system", prefixed, []string{"portal:w"}, true, nil, nil},
		{"a prefix: an organization named like the system", prefixed, []string{"study.portal:w", "study.portal:r"}, false, []string{"portal"}, []string{"portal"}},
		{"a prefix: scopes without it", prefixed, []string{"S1:w", "S1:r"}, false, nil, nil},
		{"a prefix: an empty organization", prefixed, []string{"study.:w"}, false, nil, nil},
		{"a prefix: overlapping ends", auth.Scopes{OrganizationPrefix: "song.", System: "song"}, []string{"song.WRITE"}, true, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			scope := tc.scopes
			store := &keyStore{}
			keys := newKeys(t, store, auth.KeysConfig{Scopes: scope, Now: new(clock).now})
			// The store also returns scopes that Create would reject, like a JWT.
			_, text, err := keys.Create(t.Context(), "portal", []string{scope.SystemScope()}, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			store.keys[0].Scopes = tc.given
			p, err := keys.Authenticate(t.Context(), text)
			if err != nil {
				t.Fatal(err)
			}
			if p.Name != "portal" || p.System != tc.system {
				t.Errorf("got %+v", p)
			}
			if diff := cmp.Diff([][]string{tc.given, tc.writes, tc.reads}, [][]string{p.Scopes, names(p.Writes), names(p.Reads)}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestScopesAreNamed(t *testing.T) {
	for _, tc := range []struct {
		name   string
		scopes auth.Scopes
		want   []string
	}{
		{"default", auth.Scopes{}, []string{"tutti.WRITE", "S1.WRITE", "S1.READ"}},
		{"all set", auth.Scopes{System: "p", OrganizationPrefix: "s:", WriteSuffix: "-w", ReadSuffix: "-r"}, []string{"p-w", "s:S1-w", "s:S1-r"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := []string{tc.scopes.SystemScope(), tc.scopes.WriteScope("S1"), tc.scopes.ReadScope("S1")}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAmbiguousScopes: one text must not have two meanings.
func TestAmbiguousScopes(t *testing.T) {
	for _, tc := range []struct {
		name, message string
		scopes        auth.Scopes
	}{
		{"equal suffixes", `the write suffix "x" and the read suffix "x" are ambiguous`, auth.Scopes{WriteSuffix: "x", ReadSuffix: "x"}},
		{"one is a suffix of the other", `the write suffix "x.READ" and the read suffix ".READ" are ambiguous`, auth.Scopes{WriteSuffix: "x.READ"}},
		{
			"a system with the prefix", `the system scope would also be the write scope of an organization called "admin"`,
			auth.Scopes{OrganizationPrefix: "study.", System: "study.admin"},
		},
		{"a space", `"my portal" cannot be a part of a scope: it contains a space or a control character`, auth.Scopes{System: "my portal"}},
		{"a line feed", `"a\n" cannot be a part of a scope: it contains a space or a control character`, auth.Scopes{OrganizationPrefix: "a\n"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := auth.NewKeys(&keyStore{}, auth.KeysConfig{Scopes: tc.scopes})
			wantError(t, err, core.CodeInvalid, tc.message)
		})
	}
}
