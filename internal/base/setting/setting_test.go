package setting_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tutti/internal/base/setting"
	"tutti/internal/core"
)

func TestVariable(t *testing.T) {
	for path, want := range map[string]string{
		"server.listen": "TUTTI_SERVER_LISTEN", "repositories[0].code": "TUTTI_REPOSITORIES_0_CODE",
		"index.apiKey": "TUTTI_INDEX_API_KEY", "auth.jwt.jwksUrl": "TUTTI_AUTH_JWT_JWKS_URL", "repositories[12].song.states[1]": "TUTTI_REPOSITORIES_12_SONG_STATES_1",
		"server.maxBodyBytes":                    "TUTTI_SERVER_MAX_BODY_BYTES",
		"catalogues.disableGraphQLIntrospection": "TUTTI_CATALOGUES_DISABLE_GRAPHQL_INTROSPECTION",
	} {
		if got := setting.Variable(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestAliasesDoNotMultiplyWithoutEnd(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	for _, file := range []string{"a: &a [*a]", "a: &a [*a, *a]", bomb, "a: " + strings.Repeat("[", 101) + strings.Repeat("]", 101)} {
		var found setting.ErrorList
		setting.Parse([]byte(file), &found)
		if f := setting.Errors(found.Err()); len(f) == 0 || !strings.Contains(f[0].Message, "too deeply or too large") {
			t.Errorf("got %v", f)
		}
	}
}

func TestFaultsOfNil(t *testing.T) {
	if f := setting.Errors(nil); f != nil {
		t.Errorf("got %v", f)
	}
	if f := setting.Errors(errors.New("other")); len(f) != 1 || f[0].Code != core.CodeInternal {
		t.Errorf("got %v", f)
	}
}
