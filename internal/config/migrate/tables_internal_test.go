package migrate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"tutti/internal/config"
)

// bases are environments to which TestTables adds one variable each: Maestro 5 with a Song and with a Lyric, Maestro 4, Arranger, and
// Song with Keycloak and with Ego.
var bases = map[string][]string{
	"Maestro": {
		`MAESTRO_ELASTICSEARCH_NODES=http://a:1
MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_USER=u
MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_PASSWORD=p
MAESTRO_KAFKA_BROKERS=k:1
MAESTRO_KAFKA_INDEX_REQUEST_TOPIC=r
MAESTRO_REPOSITORIES_0_BASE_URL=http://b
MAESTRO_REPOSITORIES_0_TYPE=SONG
MAESTRO_REPOSITORIES_0_KAFKA_DOCUMENT_UPDATE_TOPIC=t`,
		`MAESTRO_ELASTICSEARCH_NODES=http://a:1
MAESTRO_REPOSITORIES_0_BASE_URL=http://b
MAESTRO_REPOSITORIES_0_TYPE=LYRIC`,
		`MAESTRO_ELASTICSEARCH_CLUSTERNODES=http://a:1
SPRING_CLOUD_STREAM_KAFKA_BINDER_BROKERS=k:1
MAESTRO_REPOSITORIES_0_URL=http://b`,
		`MAESTRO_ELASTICSEARCH_INDEXES_ANALYSISCENTRIC_ENABLED=true
MAESTRO_REPOSITORIES_0_URL=http://b`,
	},
	"Arranger": {`ES_HOST=http://a:1
ES_USER=u
ES_PASS=p`},
	"Song": {
		`SPRING_PROFILES_ACTIVE=secure
AUTH_SERVER_PROVIDER=keycloak
AUTH_SERVER_KEYCLOAK_HOST=https://k
AUTH_SERVER_KEYCLOAK_REALM=r
AUTH_SERVER_INTROSPECTIONURI=https://i
AUTH_SERVER_CLIENTID=c
AUTH_SERVER_CLIENTSECRET=s
SPRING_SECURITY_OAUTH2_RESOURCESERVER_JWT_JWK_SET_URI=https://j`,
		`SPRING_PROFILES_ACTIVE=secure`,
	},
}

// samples are values of tutti's keys that differ from those of bases.
var samples = []string{"7", "true", "false", "analysis", "debug", "http://sample:9", "https://sample", "prod,secure", "sample.WRITE", "sample"}

// settings returns the keys that the environment sets, with the variable of each.
func settings(p product, environ map[string]string) map[string]string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(environ)) {
		list = append(list, name+"="+environ[name])
	}
	f := config.NewForeign()
	p.read(f, list)
	set := values(f)
	for _, leaf := range f.Keys() {
		set[leaf.Path] += " from " + strings.TrimPrefix(leaf.Source, "variable ")
	}
	return set
}

// TestTables: a row without a conversion has the key that internal/config sets from the variable; one with a note as well changes some key.
func TestTables(t *testing.T) {
	for _, p := range []product{maestro(), arranger(), song()} {
		names := map[string]bool{}
		for _, k := range p.keys {
			if names[plain(k.name)] {
				t.Errorf("%s has %s twice", p.name, k.name)
			}
			names[plain(k.name)] = true
			if k.to != "" && k.by == nil && !p.sets(k) {
				t.Errorf("%s: internal/config does not set %s from %s", p.name, k.to, k.name)
			}
		}
	}
}

// sets reports whether internal/config sets a row's key from its variable, with a note whether the variable changes anything.
func (p product) sets(k key) bool {
	name := strings.ReplaceAll(k.name, "#", "0")
	for _, base := range bases[p.name] {
		without := map[string]string{}
		for line := range strings.Lines(base) {
			given, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			// Another variable of the same key would have precedence.
			if other := p.row(given); k.note != "" || other.note != "" || other.to != k.to {
				without[given] = value
			}
		}
		delete(without, name)
		before := settings(p, without)
		for _, sample := range samples {
			with := maps.Clone(without)
			with[name] = sample
			after := settings(p, with)
			if k.note == "" && strings.HasSuffix(after[strings.ReplaceAll(k.to, "#", "0")], " from "+name) ||
				k.note != "" && !maps.Equal(before, after) {
				return true
			}
		}
	}
	return false
}

// TestConversions checks the rows that the tables convert themselves.
func TestConversions(t *testing.T) {
	for name, tt := range map[string]struct {
		environ string
		want    map[string]string
	}{
		"port":             {"ES_HOST=a\nSERVER_PORT=5050", map[string]string{"server.listen": "127.0.0.1:5050"}},
		"origins":          {"ES_HOST=a\nALLOWED_CORS_ORIGINS=https://a,https://b", map[string]string{"server.cors.origins": "[https://a https://b]"}},
		"debug":            {"ES_HOST=a\nENABLE_DEBUG=true", map[string]string{"log.level": "debug"}},
		"no debug":         {"ES_HOST=a\nENABLE_DEBUG=false", map[string]string{"log.level": ""}},
		"level of Spring":  {"SONG_ID=a\nLOGGING_LEVEL_ROOT=TRACE", map[string]string{"log.level": "debug"}},
		"enforceLatest":    {"SONG_ID=a\nSCHEMAS_ENFORCELATEST=false", map[string]string{"schemas.enforceLatest": "false"}},
		"Song's id":        {"SONG_ID=a.b", map[string]string{"repositories[0].code": "a.b", "repositories[0].type": "local"}},
		"Song and Maestro": {"SONG_ID=x\nMAESTRO_REPOSITORIES_0_BASE_URL=http://a", map[string]string{"repositories[0].code": ""}},
		"timeout": {
			"MAESTRO_REPOSITORIES_0_URL=a\nMAESTRO_REPOSITORIES_1_URL=b\nMAESTRO_SONG_TIMEOUTSEC_STUDY=90",
			map[string]string{"repositories[0].timeout": "90s", "repositories[1].timeout": "90s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			products, _, err := readAll(Input{Environ: strings.Split(tt.environ, "\n")})
			if err != nil {
				t.Fatal(err)
			}
			m := &migration{foreign: config.NewForeign(), origin: map[string]string{}}
			for i := range products {
				m.read(&products[i])
			}
			for i := range products {
				m.convert(&products[i])
			}
			set := values(m.foreign)
			for path, want := range tt.want {
				if set[path] != want {
					t.Errorf("%s is %q, want %q", path, set[path], want)
				}
			}
		})
	}
}
