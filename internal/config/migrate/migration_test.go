package migrate_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/config"
	migrate "tutti/internal/config/migrate"
	"tutti/internal/core"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestMigrate migrates one deployment of each product's version. Every file is accepted by the loader and shows no secret.
func TestMigrate(t *testing.T) {
	const root = "testdata/"
	for name, in := range map[string]migrate.Input{
		"maestro4":  {Maestro: root + "maestro4/application.yml"},
		"maestro5":  {Maestro: root + "maestro5/.env"},
		"arranger3": {Arranger: root + "arranger3"},
		"configs":   {Arranger: root + "arranger3/configs/files"},
		"song5":     {Song: root + "song5"},
		"all":       {Maestro: root + "maestro5", Arranger: root + "arranger3/.env", Song: root + "song5"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := migrate.Migrate(in)
			if err != nil {
				t.Fatal(err)
			}
			warnings := strings.Join(out.Warnings, "\n") + "\n"
			golden(t, name+".golden.yaml", string(out.File))
			golden(t, name+".golden.txt", warnings)
			if _, err := config.Parse(out.File, nil); err != nil {
				t.Error(err)
			}
			if strings.Contains(string(out.File)+warnings, "not-for-print") {
				t.Error("a secret is shown")
			}
		})
	}
}

// TestSameAsEnvironment: the file means what the environment means at a start, apart from the port.
func TestSameAsEnvironment(t *testing.T) {
	environ := []string{
		"MAESTRO_ELASTICSEARCH_NODES=http://es:9200", "MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_USER=u", "MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_PASSWORD=p",
		"MAESTRO_KAFKA_BROKERS=k:9092,l", "MAESTRO_KAFKA_INDEX_REQUEST_TOPIC=requests",
		"MAESTRO_REPOSITORIES_0_BASE_URL=http://a", "MAESTRO_REPOSITORIES_0_CODE=1", "MAESTRO_REPOSITORIES_0_NAME=true",
		"MAESTRO_REPOSITORIES_0_TYPE=LYRIC", "MAESTRO_REPOSITORIES_0_INDEX_NAME=a", "MAESTRO_REPOSITORIES_0_LYRIC_CATEGORY_ID=007",
		"MAESTRO_REPOSITORIES_0_LYRIC_VALID_DATA_ONLY=false", "MAESTRO_REPOSITORIES_0_PAGINATION_SIZE=20",
		"MAESTRO_REPOSITORIES_1_BASE_URL=http://b", "MAESTRO_REPOSITORIES_1_CODE=b", "MAESTRO_REPOSITORIES_1_NAME=B: #1 \"x\"",
		"MAESTRO_REPOSITORIES_1_INDEX_NAME=b", "MAESTRO_REPOSITORIES_1_SONG_INDEXING_MODE=file",
		"MAESTRO_REPOSITORIES_1_SONG_INDEXABLE_STUDY_STATES=PUBLISHED,SUPPRESSED", "MAESTRO_REPOSITORIES_1_KAFKA_DOCUMENT_UPDATE_TOPIC=t",
		"MAESTRO_EXCLUSIONRULES_BYID_STUDYID_0=A", "MAESTRO_EXCLUSIONRULES_BYID_STUDYID_1=7", "EXCLUSIONRULES_BYID_DONOR=DO1,DO2",
		"CONFIGS_PATH=testdata/arranger3/configs", "DISABLE_GRAPHQL_INTROSPECTION=false",
	}
	out, err := migrate.Migrate(migrate.Input{Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	got, err := config.Parse(out.File, []string{"TUTTI_INDEX_USERNAME=u", "TUTTI_INDEX_PASSWORD=p"})
	if err != nil {
		t.Fatal(err)
	}
	want, err := config.Load("", environ)
	if err != nil {
		t.Fatal(err)
	}
	got.Warnings, want.Warnings = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-environment +file):\n%s\n%s", diff, out.File)
	}
}

// write makes a file in a new folder.
func write(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestInvalidInput(t *testing.T) {
	for name, tt := range map[string]struct{ file, content, want string }{
		"no assignment":  {".env", "ES_HOST=a\nES_USER", "line 2: is not NAME=value"},
		"open quotes":    {".env", "A=1\nES_USER='a\n\nb", "line 2: the quotes of ES_USER are not closed"},
		"nothing known":  {".env", "# empty\n", "contains no key of Maestro"},
		"no YAML":        {"application.yml", "maestro: {", "is not YAML: "},
		"second no YAML": {"application.yml", "maestro: {}\n---\na: [", "is not YAML: "},
		"recursive YAML": {"application.yml", "a: &a\n  b: *a", "is nested too deeply or too large"},
		"deep YAML":      {"application.yml", strings.Repeat("[", 30) + strings.Repeat("]", 30), "is nested too deeply or too large"},
		"no character":   {"application.properties", "a=1\nb=\\u12", `line 2: \u needs four digits`},
		"no hexadecimal": {"application.properties", "b=\\u12xy", `line 1: \u12xy is not a character`},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, tt.file, tt.content)
			if _, err := migrate.Migrate(migrate.Input{Maestro: file}); err == nil || !strings.Contains(err.Error(), file+": "+tt.want) &&
				!strings.Contains(err.Error(), file+" "+tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	for name, tt := range map[string]struct {
		in         migrate.Input
		want, hint string
	}{
		"nothing":       {migrate.Input{Environ: []string{"SERVER_PORT=1", "SPRING_PROFILES_ACTIVE=secure", "NODE_ENV=production"}}, "there is no configuration of a Maestro", "name a file or a folder with --maestro, --arranger or --song, or set the variables of one of them in the environment"},
		"missing":       {migrate.Input{Song: "testdata/none"}, "testdata/none cannot be read: no such file", ""},
		"empty folder":  {migrate.Input{Song: "testdata/arranger3/configs"}, "contains no configuration of Song", "it may hold application.yml, application.properties or .env"},
		"empty configs": {migrate.Input{Arranger: "testdata/maestro4"}, "testdata/maestro4 contains no key of Arranger", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := migrate.Migrate(tt.in); err == nil || !strings.Contains(err.Error(), tt.want) || core.HintOf(err) != tt.hint {
				t.Errorf("%v, want %s and the hint %q", err, tt.want, tt.hint)
			}
		})
	}
}

// TestForms reads the same key in each form.
func TestForms(t *testing.T) {
	for name, tt := range map[string]struct{ file, content, value string }{
		"plain":             {".env", "MAESTRO_LOGGING_LEVEL=warn # why\nMAESTRO_ELASTICSEARCH_VERSION=8", "warn"},
		"exported":          {".env", "export MAESTRO_LOGGING_LEVEL = warn\r\nMAESTRO_ELASTICSEARCH_VERSION=8", "warn"},
		"double quotes":     {".env", `MAESTRO_LOGGING_LEVEL="warn" # why` + "\nMAESTRO_ELASTICSEARCH_VERSION=8", "warn"},
		"single quotes":     {".env", "MAESTRO_LOGGING_LEVEL='warn'\nMAESTRO_ELASTICSEARCH_VERSION=8", "warn"},
		"several lines":     {".env", "MAESTRO_NOTE=\"one\ntwo\"\nMAESTRO_LOGGING_LEVEL=warn\nMAESTRO_ELASTICSEARCH_VERSION=8", "warn"},
		"the last":          {".env", "MAESTRO_LOGGING_LEVEL=info\nMAESTRO_LOGGING_LEVEL=warn\nMAESTRO_ELASTICSEARCH_VERSION=8", "warn"},
		"nested":            {"application.yml", "maestro: {logging: {level: warn}, elasticsearch: {version: 8}}", "warn"},
		"dotted":            {"application.yaml", "maestro.logging.level: warn\nmaestro.elasticsearch.version: 8", "warn"},
		"alias":             {"application.yml", "x: &x {level: warn}\nmaestro: {logging: *x, elasticsearch: {version: 8}}", "warn"},
		"merge":             {"application.yml", "x: &x {level: warn}\nmaestro: {logging: {<<: *x}, elasticsearch: {version: 8}}", "warn"},
		"reference":         {"application.yml", "a.b: warn\nmaestro: {logging: {level: \"${A_B}\"}, elasticsearch: {version: 8}}", "warn"},
		"default":           {"application.yml", "maestro: {logging: {level: \"${LEVEL:warn}\"}, elasticsearch: {version: 8}}", "warn"},
		"active profile":    {"application.yml", "spring.profiles.active: a,b\nmaestro.elasticsearch.version: 8\n---\nspring.profiles: b\nmaestro.logging.level: warn", "warn"},
		"not profile":       {"application.yml", "maestro.elasticsearch.version: 8\n---\nspring.config.activate.on-profile: '!b'\nmaestro.logging.level: warn", "warn"},
		"properties":        {"application.properties", "# a\n! b\nmaestro.logging.level = warn\nmaestro.elasticsearch.version:8", "warn"},
		"continued":         {"application.properties", "maestro.logging.level=wa\\\n   rn\nmaestro.elasticsearch.version 8", "warn"},
		"escaped":           {"application.properties", "maestro.logging.le\\u0076el=w\\arn\nmaestro.elasticsearch.version=8", "warn"},
		"second document":   {"application.properties", "maestro.elasticsearch.version=8\nspring.profiles.active=p\n#---\nspring.config.activate.on-profile=p\nmaestro.logging.level=warn", "warn"},
		"last backslash":    {"application.properties", "maestro.logging.level=warn\nmaestro.elasticsearch.version=8\\", "warn"},
		"inactive profile":  {"application.yml", "spring.profiles.active: a\nmaestro.elasticsearch.version: 8\n---\nspring.profiles: b\nmaestro.logging.level: warn", "info"},
		"commented":         {".env", "#MAESTRO_LOGGING_LEVEL=warn\nMAESTRO_ELASTICSEARCH_VERSION=8", "info"},
		"empty":             {".env", "MAESTRO_LOGGING_LEVEL=\nMAESTRO_ELASTICSEARCH_VERSION=8", "info"},
		"unknown level":     {".env", "MAESTRO_LOGGING_LEVEL=loud\nMAESTRO_ELASTICSEARCH_VERSION=8", "info"},
		"without reference": {"application.yml", "maestro: {logging: {level: \"${LEVEL}\"}, elasticsearch: {version: 8}}", "info"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := migrate.Migrate(migrate.Input{Maestro: write(t, tt.file, tt.content)})
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Parse(out.File, nil)
			if err != nil || cfg.Log.Level != tt.value {
				t.Errorf("%v, log.level %s, want %s\n%s", err, cfg.Log.Level, tt.value, out.File)
			}
		})
	}
}

// TestDecisions: what cannot be migrated as it is, with the warning.
func TestDecisions(t *testing.T) {
	folder := func(files map[string]string) string {
		dir := t.TempDir()
		for name, content := range files {
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	const secure = "song.id: a\n---\nspring.config.activate.on-profile: secure\nauth.server.scope.system: x.WRITE"
	for name, tt := range map[string]struct {
		in            migrate.Input
		file, warning string
	}{
		"two indices": {
			migrate.Input{Environ: []string{"MAESTRO_ELASTICSEARCH_NODES=http://a:1", "ES_HOST=b", "ES_USER=u", "ES_PASS=p"}},
			"\nindex:\n  url: http://a:1  # Maestro: MAESTRO_ELASTICSEARCH_NODES\n\n#",
			"index.url is http://a:1 from Maestro: MAESTRO_ELASTICSEARCH_NODES: ES_HOST of Arranger is http://b:9200, and not used",
		},
		"the same index": {
			migrate.Input{Environ: []string{"MAESTRO_ELASTICSEARCH_NODES=http://a:1", "ES_HOST=a:1", "ES_USER=u", "ES_PASS=p"}},
			"  # username: u  # Arranger: ES_USER; remove the # when the secret is set\n",
			"index.password is a secret and not copied (Arranger: ES_PASS): set TUTTI_INDEX_PASSWORD",
		},
		"index of a catalogue": {
			migrate.Input{Arranger: folder(map[string]string{"base.json": `{"esHost": "es", "esUser": "u", "esPass": "not-for-print"}`})},
			"  url: http://es:9200  # Arranger: esHost in ",
			"(Arranger: esPass in ",
		},
		"two indices of catalogues": {
			migrate.Input{Arranger: folder(map[string]string{"a/base.json": `{"esHost": "a"}`, "b/base.json": `{"esHost": "b"}`})},
			"  url: http://a:9200  # Arranger: esHost in ",
			"which is used: tutti has one setting for all catalogues",
		},
		"no JSON": {
			migrate.Input{Arranger: folder(map[string]string{"base.json": `{`})},
			"catalogues:\n  dir: ", "base.json is not readable JSON: see tutti catalogues check",
		},
		"credentials in a URL": {
			migrate.Input{Environ: []string{"ES_HOST=http://u:not-for-print@es:9200"}},
			"  # url: http://********@es:9200  # Arranger: ES_HOST, not valid: index.url: the URL contains credentials",
			"index.url: the URL contains credentials: index.url is written as a comment",
		},
		"credentials before a host": {
			migrate.Input{Environ: []string{"MAESTRO_ELASTICSEARCH_NODES=http://a:1", "ES_HOST=u:not-for-print@es:9200"}},
			"#   ES_HOST: ********@es:9200  (index.url is from Maestro: MAESTRO_ELASTICSEARCH_NODES)\n",
			"ES_HOST of Arranger is http://********@es:9200, and not used",
		},
		"no folder": {
			migrate.Input{Environ: []string{"CONFIGS_PATH=testdata/none"}},
			"  # dir: testdata/none  # Arranger: CONFIGS_PATH, not valid: catalogues.dir: testdata/none cannot be read: no such file or directory\n",
			"catalogues.dir is written as a comment",
		},
		"a part that misses a key": {
			migrate.Input{Environ: []string{"MAESTRO_REPOSITORIES_0_BASE_URL=http://a", "MAESTRO_REPOSITORIES_0_NAME=A\n- b: c"}},
			"  # - type: song  # Maestro: MAESTRO_REPOSITORIES_0_BASE_URL\n  #   url: http://a  # Maestro: MAESTRO_REPOSITORIES_0_BASE_URL\n" +
				"  #   name: \"A\\n- b: c\"  # Maestro: MAESTRO_REPOSITORIES_0_NAME\n",
			"repositories[0].code: is missing: the part of the file that has it is written as a comment",
		},
		"a folder with a line break": {
			migrate.Input{Arranger: folder(map[string]string{"a\nqueue: {url: x}/base.json": `{}`})},
			"/a queue: {url: x} (base.json)\n", "",
		},
		"no UTF-8": {
			migrate.Input{Environ: []string{"MAESTRO_REPOSITORIES_0_URL=http://a", "MAESTRO_REPOSITORIES_0_CODE=a", "MAESTRO_REPOSITORIES_0_NAME=A\xff"}},
			"\n    name: A?  # ", "",
		},
		"unknown provider": {
			migrate.Input{Environ: []string{"SPRING_PROFILES_ACTIVE=secure", "AUTH_SERVER_PROVIDER=okta"}},
			"\n  mode: token  # ", `Song: AUTH_SERVER_PROVIDER: "okta" is not a provider of Song`,
		},
		"setting of one catalogue": {
			migrate.Input{Arranger: folder(map[string]string{".env": "ENABLE_SETS=true", "a/base.json": `{"enableSets": true}`, "b/base.json": `{}`})},
			"#   ENABLE_SETS: true  (tutti reads it in the files of a catalogue only)\n", "Arranger: ENABLE_SETS is true: set enableSets in base.json",
		},
		"unknown secret": {
			migrate.Input{Maestro: write(t, ".env", "MAESTRO_ELASTICSEARCH_NODES=http://a\nMAESTRO_NEW_TOKEN=not-for-print\nMAESTRO_NEW=1\nMAESTRO_DB=jdbc://a?password=not-for-print")},
			"#   MAESTRO_DB: jdbc://a?password=********  (unknown)\n#   MAESTRO_NEW: 1  (unknown)\n#   MAESTRO_NEW_TOKEN: (not shown)  (unknown)\n",
			"server.listen is ",
		},
		"profiles": {
			migrate.Input{Song: write(t, "application.yml", secure), Environ: []string{"SPRING_PROFILES_ACTIVE=prod,secure"}},
			"  mode: token  # Song: SPRING_PROFILES_ACTIVE\n  systemScope: x  # Song: auth.server.scope.system\n", "server.listen is 127.0.0.1:8080: set the address that clients use",
		},
		"no profiles": {
			migrate.Input{Song: write(t, "application.yml", secure)},
			"\nrepositories:\n  - code: a  # Song: song.id\n",
			"the parts for the profiles secure are not read: set SPRING_PROFILES_ACTIVE to the active ones",
		},
		"file of a profile": {
			migrate.Input{Song: folder(map[string]string{
				"application.properties": "song.id=a\nspring.profiles.active=prod", "application-prod.yaml": "song.id: b", "application-dev.yml": "song.id: c",
			})},
			"\nrepositories:\n  - code: b  # Song: song.id\n", "server.listen is ",
		},
		"exclusion rules": {
			migrate.Input{Environ: []string{
				"MAESTRO_REPOSITORIES_0_URL=http://a", "MAESTRO_REPOSITORIES_0_CODE=a", "MAESTRO_EXCLUSIONRULES_BYID_FILE_0=F1",
				"MAESTRO_EXCLUSIONRULES_BYID_FILE_1=F2", "MAESTRO_EXCLUSIONRULES_BYID_STUDY=S1",
			}},
			"    exclude:\n      files: [F1, F2]  # Maestro: MAESTRO_EXCLUSIONRULES_BYID_FILE_0\n\n" +
				"# Maestro: keys without a counterpart, or with another use\n#   MAESTRO_EXCLUSIONRULES_BYID_STUDY: S1\n",
			"Maestro: MAESTRO_EXCLUSIONRULES_BYID_STUDY is S1, and what it excludes would be indexed: set exclude of the repositories",
		},
		"exclusion rules alone": {
			migrate.Input{Environ: []string{"MAESTRO_ELASTICSEARCH_NODES=http://a:1", "MAESTRO_EXCLUSIONRULES_BYID_STUDYID=S1"}},
			"#   MAESTRO_EXCLUSIONRULES_BYID_STUDYID: S1\n",
			"Maestro: MAESTRO_EXCLUSIONRULES_BYID_STUDYID is S1, and what it excludes would be indexed: set exclude of the repositories",
		},
		"Song and its reader": {
			migrate.Input{Environ: []string{"SONG_ID=x", "MAESTRO_REPOSITORIES_0_URL=http://a", "MAESTRO_REPOSITORIES_0_CODE=a"}},
			"#   SONG_ID: x  (the code of a repository)\n", "Song: SONG_ID is x, but no repository has this code",
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := migrate.Migrate(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			warnings := strings.Join(out.Warnings, "\n")
			if !strings.Contains(string(out.File), tt.file) {
				t.Errorf("the file does not contain %s\n%s", tt.file, out.File)
			}
			if !strings.Contains(warnings, tt.warning) {
				t.Errorf("the warnings do not contain %s\n%s", tt.warning, warnings)
			}
			if strings.Contains(string(out.File)+warnings, "not-for-print") {
				t.Errorf("a secret is shown\n%s\n%s", out.File, warnings)
			}
		})
	}
}

// TestSettingOfCatalogues: a variable that the files of each catalogue replace needs no decision.
func TestSettingOfCatalogues(t *testing.T) {
	out, err := migrate.Migrate(migrate.Input{Environ: []string{"CONFIGS_PATH=testdata/arranger3/configs/donors", "ENABLE_SETS=true", "DOCUMENT_TYPE=a"}})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.Join(out.Warnings, "\n"), "base.json") {
		t.Error(out.Warnings)
	}
}

// TestEngineOfArranger: an OpenSearch needs no decision.
func TestEngineOfArranger(t *testing.T) {
	out, err := migrate.Migrate(migrate.Input{Environ: []string{"ES_HOST=http://a:9200", "SEARCH_ENGINE=opensearch"}})
	if err != nil {
		t.Fatal(err)
	}
	const want = "#   SEARCH_ENGINE: opensearch  (tutti identifies the engine: Elasticsearch 7.17 or later, or OpenSearch 2.7 or later)\n"
	if strings.Contains(strings.Join(out.Warnings, "\n"), "SEARCH_ENGINE") || !strings.Contains(string(out.File), want) {
		t.Errorf("%s\n%s", out.Warnings, out.File)
	}
}

// FuzzMigrate: whatever a file holds, the result is accepted by the loader, which Migrate reports otherwise.
func FuzzMigrate(f *testing.F) {
	for _, name := range []string{"maestro4/application.yml", "maestro5/.env", "song5/application.yml", "arranger3/.env"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(filepath.Base(name), string(data))
	}
	f.Add(".env", "MAESTRO_REPOSITORIES_0_URL=x\nMAESTRO_REPOSITORIES_0_CODE=\"a\\nb: c\"\nES_HOST=http://u:p@h\nSERVER_PORT=-1\nSONG_ID=#")
	f.Add("application.properties", "maestro.repositories[0].url=a\nmaestro.elasticsearch.clusterNodes=a\nserver.port=x\\u000ay: z")
	f.Fuzz(func(t *testing.T, name, content string) {
		switch name {
		case ".env", "application.yml", "application.properties":
		default:
			return
		}
		file := write(t, name, content)
		for _, in := range []migrate.Input{{Maestro: file}, {Song: file}, {Arranger: file}} {
			if _, err := migrate.Migrate(in); core.CodeOf(err) == core.CodeInternal {
				t.Fatal(err)
			}
		}
	})
}
