package foreign_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/base/setting"
	"tutti/internal/config"
	"tutti/internal/core"
)

// maestro4 is the environment of the container in Maestro 4's setup guide.
const maestro4 = `
MAESTRO_FAILURELOG_ENABLED=true
MAESTRO_FAILURELOG_DIR=app/logs/maestro
MAESTRO_LOGGING_LEVEL_ROOT=INFO
MAESTRO_NOTIFICATIONS_SLACK_ENABLED=false
MAESTRO_REPOSITORIES_0_CODE=song.overture
MAESTRO_REPOSITORIES_0_URL=http://song:8080
MAESTRO_REPOSITORIES_0_NAME=Overture
MAESTRO_REPOSITORIES_0_ORGANIZATION=Overture
MAESTRO_REPOSITORIES_0_COUNTRY=CA
MAESTRO_ELASTICSEARCH_CLUSTER_NODES=http://elasticsearch:9200
MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_USER=elastic
MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_PASSWORD=s3cret
MAESTRO_ELASTICSEARCH_CLIENT_TRUSTSELFSIGNCERT=true
MAESTRO_ELASTICSEARCH_INDEXES_ANALYSISCENTRIC_ENABLED=true
MAESTRO_ELASTICSEARCH_INDEXES_FILECENTRIC_ENABLED=false
MAESTRO_ELASTICSEARCH_INDEXES_ANALYSISCENTRIC_NAME=analysis-composer-index
MAESTRO_ELASTICSEARCH_INDEXES_ANALYSISCENTRIC_ALIAS=analysis_centric
MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_ENABLED=true
MANAGEMENT_HEALTH_ELASTICSEARCH_ENABLED=false
SPRING_MVC_ASYNC_REQUESTTIMEOUT=-1
SPRINGDOC_SWAGGERUI_PATH=/swagger-api
SPRING_CLOUD_STREAM_KAFKA_BINDER_BROKERS=kafka:9092
SPRING_CLOUD_STREAM_BINDINGS_SONGINPUT_DESTINATION=song-analysis`

// maestro4Development is the environment of its developers' guide: only files, and other spellings.
const maestro4Development = `
LOGGING_LEVEL_ROOT=DEBUG
SERVER_PORT=11235
MAESTRO_FAILURELOG_DIR=/app/app-data
MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_ENABLED=true
MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_PASSWORD=
MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_USER=elastic
MAESTRO_ELASTICSEARCH_CLIENT_CONNECTIONTIMEOUT=300000
MAESTRO_ELASTICSEARCH_CLUSTERNODES_0=http://host.docker.internal:9200
MAESTRO_ELASTICSEARCH_INDEXES_ANALYSISCENTRIC_ENABLED=false
MAESTRO_ELASTICSEARCH_INDEXES_FILE_CENTRIC_NAME=file_centric_1.0
MAESTRO_REPOSITORIES_0_CODE=song.collab
MAESTRO_REPOSITORIES_0_COUNTRY=CA
MAESTRO_REPOSITORIES_0_NAME=local song
MAESTRO_REPOSITORIES_0_ORGANIZATION=overture
MAESTRO_REPOSITORIES_0_URL=http://host.docker.internal:8080
MAESTRO_SONG_PAGELIMIT=50
MAESTRO_SONG_TIMEOUTSEC_STUDY=3600
SPRING_CLOUD_STREAM_KAFKA_BINDER_BROKERS=host.docker.internal
SPRING_CLOUD_STREAM_BINDINGS_SONGINPUT_DESTINATION=song_analysis`

// maestro5 is the example environment of Maestro 5's server, with everything enabled except exclusion rules.
const maestro5 = `
MAESTRO_LOGGING_LEVEL=trace
MAESTRO_SERVER_PORT=11235
MAESTRO_OPENAPI_PATH=/api-docs
MAESTRO_ELASTICSEARCH_NODES=http://elasticsearch:9200
MAESTRO_ELASTICSEARCH_VERSION=6
MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_ENABLED=true
MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_USER=elastic
MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_PASSWORD=s3cret
MAESTRO_ELASTICSEARCH_CLIENT_RETRY_MAX_ATTEMPTS=3
MAESTRO_ELASTICSEARCH_CLIENT_DOCS_PER_BULK_REQ_MAX=5000
MAESTRO_KAFKA_BROKERS=http://kafka:9092,kafka2:9092
MAESTRO_KAFKA_GROUP_ID=maestro
MAESTRO_KAFKA_INDEX_REQUEST_TOPIC=maestro_index_request
MAESTRO_KAFKA_INDEX_REQUEST_DLQ=maestro_index_request_dlq
MAESTRO_REPOSITORIES_0_BASE_URL=https://example.com/repo0
MAESTRO_REPOSITORIES_0_CODE=repo0
MAESTRO_REPOSITORIES_0_NAME=Repository 0
MAESTRO_REPOSITORIES_0_PAGINATION_SIZE=50
MAESTRO_REPOSITORIES_0_INDEX_NAME=clinical_data_1.0
MAESTRO_REPOSITORIES_0_TYPE=LYRIC
MAESTRO_REPOSITORIES_0_LYRIC_VALID_DATA_ONLY=false
MAESTRO_REPOSITORIES_0_LYRIC_CATEGORY_ID=1
MAESTRO_REPOSITORIES_0_KAFKA_ANALYSIS_MESSAGE_TOPIC=clinical_data
MAESTRO_REPOSITORIES_0_KAFKA_ANALYSIS_MESSAGE_DLQ=clinical_data_dlq
MAESTRO_REPOSITORIES_1_BASE_URL=https://example.com/repo1
MAESTRO_REPOSITORIES_1_CODE=repo1
MAESTRO_REPOSITORIES_1_NAME=Repository 1
MAESTRO_REPOSITORIES_1_INDEX_NAME=song_data_1.0
MAESTRO_REPOSITORIES_1_TYPE=SONG
MAESTRO_REPOSITORIES_1_SONG_INDEXABLE_STUDY_STATES=PUBLISHED,SUPPRESSED
MAESTRO_REPOSITORIES_1_SONG_INDEXING_MODE=file
MAESTRO_REPOSITORIES_1_SONG_ORGANIZATION=oicr
MAESTRO_REPOSITORIES_1_SONG_COUNTRY=CA
MAESTRO_REPOSITORIES_1_KAFKA_DOCUMENT_UPDATE_TOPIC=song_analysis`

func TestMaestroMigration(t *testing.T) {
	for name, tt := range map[string]struct {
		environ, file string
		want          string // the equivalent file
		warnings      []string
	}{
		"version 4": {
			environ: maestro4,
			want: `
index: {url: "http://elasticsearch:9200", username: elastic, password: s3cret}
repositories:
  - {code: song.overture, type: song, url: "http://song:8080", indexName: analysis_centric, name: Overture, organization: Overture,
     country: CA, notifications: {kafka: {brokers: ["kafka:9092"], topic: song-analysis}}}
ingest: {kafka: {brokers: ["kafka:9092"]}}
log: {level: info}`,
			warnings: []string{
				"MAESTRO_ELASTICSEARCH_CLIENT_TRUSTSELFSIGNCERT is not supported: set the certificate authority with index.caFile",
				"these variables of Maestro are not supported and are ignored: MAESTRO_FAILURELOG_DIR, MAESTRO_FAILURELOG_ENABLED, MAESTRO_NOTIFICATIONS_SLACK_ENABLED",
			},
		},
		"version 4, development": {
			environ: maestro4Development,
			want: `
index: {url: "http://host.docker.internal:9200"}
repositories:
  - {code: song.collab, type: song, url: "http://host.docker.internal:8080", indexName: file_centric, documents: file-v4, name: local song,
     organization: overture, country: CA, pageSize: 50, notifications: {kafka: {brokers: ["host.docker.internal:9092"], topic: song_analysis}}}
ingest: {kafka: {brokers: ["host.docker.internal:9092"]}}`,
			warnings: []string{
				"MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_USER is ignored: the password is missing",
				"these variables of Maestro are not supported and are ignored: MAESTRO_ELASTICSEARCH_CLIENT_CONNECTIONTIMEOUT, MAESTRO_FAILURELOG_DIR, MAESTRO_SONG_TIMEOUTSEC_STUDY",
			},
		},
		"version 4, as properties": {
			environ: `
maestro.elasticsearch.cluster-nodes=a:9200, https://b:9200
maestro.elasticsearch.path-prefix=/es/
maestro.elasticsearch.indexes.file-centric.enabled=off
maestro.repositories[0].code=a
maestro.repositories[0].url=song:8080
maestro.song.indexable-study-states-csv=PUBLISHED,UNPUBLISHED
maestro.disable-event-indexing=true
spring.cloud.stream.kafka.binder.brokers=kafka:9092
management.security.enabled=false`,
			want: `
index: {url: "http://a:9200/es,https://b:9200/es"}
repositories: [{code: a, type: song, url: "http://song:8080", indexName: analysis_centric, song: {states: [PUBLISHED, UNPUBLISHED]}}]`,
		},
		"version 5": {
			environ: maestro5,
			want: `
log: {level: debug}
index: {url: "http://elasticsearch:9200", username: elastic, password: s3cret}
repositories:
  - {code: repo0, type: lyric, url: "https://example.com/repo0", indexName: clinical_data_1.0, name: Repository 0, pageSize: 50,
     lyric: {categoryId: "1", validOnly: false},
     notifications: {kafka: {brokers: ["kafka:9092", "kafka2:9092"], topic: clinical_data, group: maestro}}}
  - {code: repo1, type: song, url: "https://example.com/repo1", indexName: song_data_1.0, documents: file, name: Repository 1, organization: oicr,
     country: CA, song: {states: [PUBLISHED, SUPPRESSED]},
     notifications: {kafka: {brokers: ["kafka:9092", "kafka2:9092"], topic: song_analysis, group: maestro}}}
ingest: {kafka: {brokers: ["kafka:9092", "kafka2:9092"], requestTopic: maestro_index_request, group: maestro}}`,
			warnings: []string{
				"MAESTRO_ELASTICSEARCH_VERSION is 6, but tutti needs Elasticsearch 7.17 or later",
				"these variables of Maestro are not supported and are ignored: MAESTRO_ELASTICSEARCH_CLIENT_DOCS_PER_BULK_REQ_MAX, " +
					"MAESTRO_ELASTICSEARCH_CLIENT_RETRY_MAX_ATTEMPTS, MAESTRO_KAFKA_INDEX_REQUEST_DLQ, MAESTRO_OPENAPI_PATH, " +
					"MAESTRO_REPOSITORIES_0_KAFKA_ANALYSIS_MESSAGE_DLQ, MAESTRO_SERVER_PORT",
			},
		},
		"version 5, topics only where they are named": {
			environ: `
MAESTRO_KAFKA_SERVER=kafka:9092
MAESTRO_ELASTICSEARCH_VERSION=8
MAESTRO_REPOSITORIES_0_BASE_URL=http://a
MAESTRO_REPOSITORIES_0_CODE=a
MAESTRO_REPOSITORIES_0_TYPE=SONG
MAESTRO_REPOSITORIES_0_INDEX_NAME=a
MAESTRO_REPOSITORIES_0_SONG_ANALYSIS_CENTRIC_ENABLED=true
MAESTRO_REPOSITORIES_2_CODE=c`,
			want:     `repositories: [{code: a, type: song, url: "http://a", indexName: a, documents: analysis}]`,
			warnings: []string{"MAESTRO_REPOSITORIES_2_CODE is ignored: repository 1 has no URL"},
		},
		"tutti's keys win one by one": {
			environ: maestro4 + "\nTUTTI_INDEX_URL=http://other\nTUTTI_LOG_LEVEL=error",
			file:    `{index: {apiKeyFile: KEY}, ingest: {kafka: {requestTopic: mine}}}`,
			want: `
index: {url: "http://other", apiKeyFile: KEY}
repositories:
  - {code: song.overture, type: song, url: "http://song:8080", indexName: analysis_centric, name: Overture, organization: Overture,
     country: CA, notifications: {kafka: {brokers: ["kafka:9092"], topic: song-analysis}}}
ingest: {kafka: {brokers: ["kafka:9092"], requestTopic: mine}}
log: {level: error}`,
			warnings: []string{"MAESTRO_ELASTICSEARCH_CLIENT_TRUSTSELFSIGNCERT is not supported", "these variables of Maestro"},
		},
		"tutti's repositories win as a whole": {
			environ: "MAESTRO_ELASTICSEARCH_NODES=http://es\nMAESTRO_REPOSITORIES_0_URL=http://b\nMAESTRO_REPOSITORIES_0_CODE=b\nMAESTRO_REPOSITORIES_1_URL=http://c",
			file:    least,
			want:    least + "\nindex: {url: 'http://es'}",
			warnings: []string{
				"MAESTRO_REPOSITORIES_… are ignored: repositories are configured in the file or with TUTTI_REPOSITORIES_…",
			},
		},
		"an empty list names no repository": {
			environ: "MAESTRO_REPOSITORIES_0_BASE_URL=http://b\nMAESTRO_REPOSITORIES_0_CODE=b\nMAESTRO_REPOSITORIES_0_INDEX_NAME=b",
			file:    "repositories: []",
			want:    `repositories: [{code: b, type: song, url: "http://b", indexName: b}]`,
		},
		"no repositories": {
			environ: "MAESTRO_ELASTICSEARCH_NODES=http://es",
			want:    "{index: {url: 'http://es'}, repositories: [{code: local, type: local, indexName: analyses}]}",
		},
		"the embedded index has no credentials": {
			environ:  "MAESTRO_ELASTICSEARCH_NODES=http://es\nMAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_USER=u\nMAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_PASSWORD=p",
			file:     least + "\nindex: {url: ''}",
			want:     least,
			warnings: []string{"MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_USER is ignored: no Elasticsearch node is configured"},
		},
		"basic authentication turned off": {
			environ: "MAESTRO_ELASTICSEARCH_NODES=http://es\nMAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_ENABLED=false\n" +
				"MAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_USER=u\nMAESTRO_ELASTICSEARCH_CLIENT_BASICAUTH_PASSWORD=p",
			file: least,
			want: least + "\nindex: {url: 'http://es'}",
		},
		"another program named Maestro": {
			environ: "MAESTRO_LOGGING_LEVEL=debug\nMAESTRO_KAFKA_BROKERS=k:1\nMAESTRO_CLI_NO_ANALYTICS=1",
			file:    least,
			want:    least,
		},
	} {
		t.Run(name, func(t *testing.T) {
			key := fileOf(t, "key", "own")
			got := parse(t, strings.ReplaceAll(tt.file, "KEY", key), strings.Split(strings.TrimSpace(tt.environ), "\n")...)
			if !slices.EqualFunc(got.Warnings, tt.warnings, strings.HasPrefix) {
				t.Errorf("warnings:\n%s\nwant:\n%s", strings.Join(got.Warnings, "\n"), strings.Join(tt.warnings, "\n"))
			}
			if strings.Contains(strings.Join(got.Warnings, ""), "s3cret") {
				t.Error("a secret is shown")
			}
			got.Warnings = nil
			if diff := cmp.Diff(parse(t, strings.ReplaceAll(tt.want, "KEY", key)), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestMaestroExclusionRules: Maestro's rules apply to all repositories, with any spelling of its variables and whether or not Maestro's
// environment is otherwise used. A misspelt one stops the start, so that what Maestro excludes is never indexed by mistake.
func TestMaestroExclusionRules(t *testing.T) {
	t.Parallel()
	const unknown = ": is not an exclusion rule that tutti knows; records that Maestro excludes would be indexed"
	const several = `repositories: [{code: a, type: song, url: "http://a", indexName: a, exclude: {donors: [own]}},
		{code: b, type: lyric, url: "http://b", indexName: b, lyric: {categoryId: 1}}, {code: c, type: local, indexName: c}]`
	type lists = map[string][]string
	for name, tt := range map[string]struct {
		file, environ string
		want          []lists // of the repositories
		wants         []string
	}{
		"version 4": {
			"", maestro4 + "\nMAESTRO_EXCLUSIONRULES_BYID_STUDYID_1=B\nMAESTRO_EXCLUSIONRULES_BYID_STUDYID_0=A\nMAESTRO_EXCLUSIONRULES_BYID_STUDYID_10=C",
			[]lists{{"organizations": {"A", "B", "C"}}},
			nil,
		},
		"a list":             {least, "MAESTRO_EXCLUSIONRULES_BYID_DONOR=DO1, DO2,,DO1", []lists{{"donors": {"DO1", "DO2"}}}, nil},
		"as documented":      {least, "EXCLUSIONRULES_BYID_STUDYID=A\nEXCLUSIONRULES_BYID_SPECIMEN=SP1", []lists{{"organizations": {"A"}, "specimens": {"SP1"}}}, nil},
		"with underscores":   {least, "MAESTRO_EXCLUSION_RULES_BY_ID_STUDY_ID=A", []lists{{"organizations": {"A"}}}, nil},
		"as a property":      {least, "maestro.exclusion-rules.byId.analysis[0]=A", []lists{{"analyses": {"A"}}}, nil},
		"in camel case":      {least, "maestro.exclusionRules.byId.sample=A", []lists{{"samples": {"A"}}}, nil},
		"in mixed case":      {least, "Maestro_ExclusionRules_ById_File_0=A", []lists{{"files": {"A"}}}, nil},
		"as Maestro's code":  {least, "MAESTRO_EXCLUSIONRULES_BYID_FILES_0=A\nMAESTRO_EXCLUSIONRULES_BYID_FILE_0=B\nMAESTRO_EXCLUSIONRULES_BYID_SAMPLES=C", []lists{{"files": {"B", "A"}, "samples": {"C"}}}, nil},
		"without repository": {"", "MAESTRO_EXCLUSIONRULES_BYID_ANALYSIS=A", []lists{{"analyses": {"A"}}}, nil},
		"of several types": {
			several, "MAESTRO_EXCLUSIONRULES_BYID_STUDYID=A\nMAESTRO_EXCLUSIONRULES_BYID_DONOR=DO1",
			[]lists{{"organizations": {"A"}, "donors": {"own"}}, {"organizations": {"A"}}, {"organizations": {"A"}, "donors": {"DO1"}}},
			nil,
		},
		"empty ones":           {least, "MAESTRO_EXCLUSIONRULES_BYID_STUDYID_0= \nMAESTRO_EXCLUSIONRULES_FILENAME=", []lists{{}}, nil},
		"of another program":   {least, "MAESTROS_EXCLUSIONRULES_A=1\nEXCLUSIONRULES_A=1", []lists{{}}, nil},
		"misspelt":             {least, "MAESTRO_EXCLUSIONRULES_BYID_STUDY=s3cret", nil, []string{"MAESTRO_EXCLUSIONRULES_BYID_STUDY" + unknown}},
		"misspelt, documented": {least, "EXCLUSIONRULES_BYID_STUDIES=s3cret", nil, []string{"EXCLUSIONRULES_BYID_STUDIES" + unknown}},
		"of another kind": {
			"", maestro5 + "\n" + `MAESTRO_EXCLUSION_RULES_BY_FIELD={"study_id":["s3cret"]}` + "\nMAESTRO_EXCLUSION_RULES_FILE_NAME=rules.yml", nil,
			[]string{"MAESTRO_EXCLUSION_RULES_BY_FIELD" + unknown, "MAESTRO_EXCLUSION_RULES_FILE_NAME" + unknown},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := config.Parse([]byte(tt.file), strings.Split(strings.TrimSpace(tt.environ), "\n"))
			if tt.wants != nil {
				wantErrors(t, err, tt.wants...)
				if hint := core.HintOf(setting.Errors(err)[0]); !strings.Contains(hint, "unset") {
					t.Errorf("hint %q", hint)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []lists
			for _, r := range c.Repositories {
				got = append(got, r.Exclusions())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			const ignored = "MAESTRO_EXCLUSIONRULES_BYID_DONOR is ignored: repositories[0].exclude.donors is set"
			if slices.Contains(c.Warnings, ignored) != (tt.file == several) {
				t.Errorf("warnings %q", c.Warnings)
			}
		})
	}
}

func TestMaestroFaultsNameTheVariable(t *testing.T) {
	_, err := config.Parse(nil, []string{
		"MAESTRO_REPOSITORIES_0_BASE_URL=ftp://a", "MAESTRO_REPOSITORIES_0_CODE=a b", "MAESTRO_REPOSITORIES_0_TYPE=file",
		"MAESTRO_REPOSITORIES_0_PAGINATION_SIZE=all", "MAESTRO_ELASTICSEARCH_NODES=http://u:s3cret@es",
	})
	wantErrors(t, err,
		`repositories[0].code: "a b" is not letters, digits, dots, underscores and hyphens, the first a letter or digit, at most 512 (variable MAESTRO_REPOSITORIES_0_CODE)`,
		`repositories[0].type: must be one of song, lyric, local, not "file" (variable MAESTRO_REPOSITORIES_0_TYPE)`,
		`repositories[0].url: "ftp://a" is not an absolute http or https URL (variable MAESTRO_REPOSITORIES_0_BASE_URL)`,
		"repositories[0].indexName: is missing",
		`repositories[0].pageSize: must be a whole number from 2 to 10000, not "all" (variable MAESTRO_REPOSITORIES_0_PAGINATION_SIZE)`,
		"index.url: the URL contains credentials",
	)
}
