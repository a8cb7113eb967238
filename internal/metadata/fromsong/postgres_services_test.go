//go:build services

package fromsong_test

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/tidwall/gjson"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata/fromsong"
	"tutti/internal/store/connection"
	"tutti/internal/tools/storetest"
	"tutti/internal/tools/testkit"
)

// tables are those that both versions have, with the columns that are read.
const tables = `
CREATE TYPE access_type AS ENUM ('controlled', 'open');
CREATE TYPE analysis_state AS ENUM ('PUBLISHED', 'UNPUBLISHED', 'SUPPRESSED');
CREATE TYPE id_type AS ENUM ('Study', 'Donor', 'Specimen', 'Sample', 'File', 'Analysis', 'SequencingRead', 'VariantCall');
CREATE TABLE study (id varchar(36) PRIMARY KEY, name text, description text, organization text);
CREATE TABLE analysis_schema (id bigserial PRIMARY KEY, version int, name varchar(225), schema jsonb NOT NULL, created_at timestamp DEFAULT now());
CREATE TABLE analysis_data (id bigserial PRIMARY KEY, data jsonb NOT NULL);
CREATE TABLE analysis (id varchar(36) PRIMARY KEY, study_id varchar(36), state analysis_state, analysis_schema_id int, analysis_data_id int,
	created_at timestamp, updated_at timestamp);
CREATE TABLE analysis_state_change (id bigserial PRIMARY KEY, analysis_id varchar(36), initial_state analysis_state, updated_state analysis_state,
	updated_at timestamp);
CREATE TABLE file (id varchar(36) PRIMARY KEY, analysis_id varchar(36), study_id varchar(36), name text, size bigint, md5 char(32), access access_type,
	data_type varchar(255), type text);
CREATE TABLE info (id varchar(36), id_type id_type, info json, UNIQUE (id, id_type));
CREATE TABLE donor (id varchar(36) PRIMARY KEY, study_id varchar(36), submitter_id text, gender text);
CREATE TABLE specimen (id varchar(36) PRIMARY KEY, donor_id varchar(36), submitter_id text, type text, legacy_type text, class text, tissue_source text,
	tumour_normal_designation text);
CREATE TABLE sample (id varchar(36) PRIMARY KEY, specimen_id varchar(36), submitter_id text, type text, legacy_type text,
	matched_normal_submitter_sample_id text);
CREATE TABLE sampleset (analysis_id varchar(36), sample_id varchar(36));
INSERT INTO study VALUES ('S', 'Study', NULL, 'Org'), ('T', NULL, NULL, NULL), ('a b', 'x', NULL, NULL);
INSERT INTO analysis_schema (version, name, schema, created_at) VALUES (1, 'one', '{"type": "object"}', '2020-01-01 00:00:00'),
	(1, 'two', '{}', '2020-01-02'), (2, 'one', '{"type":"object","required":["experiment"]}', '2020-01-03'), (NULL, 'one', '{"a": 1}', NULL);
INSERT INTO analysis_data (data) VALUES ('{"experiment": {"tool": "x", "n": 1.50}}'), ('{"experiment": {}, "samples": [{"submitterSampleId": "in-data"}]}'), ('{}');
INSERT INTO analysis VALUES
	('a1', 'S', 'PUBLISHED', 1, 1, '2021-05-01 10:00:00.123456', '2021-05-01 10:00:00.123456'),
	('a2', 'S', 'UNPUBLISHED', 3, 2, '2021-05-01 09:00:00', '2021-05-02 09:00:00'),
	('a3', 'S', 'SUPPRESSED', 4, 3, '2021-05-01 10:00:00.123456', '2021-05-03'),
	('a4', 'T', 'PUBLISHED', 2, NULL, NULL, NULL),
	('a5', 'T', 'PUBLISHED', NULL, 3, '2021-05-01', '2021-05-01'),
	('a6', 'T', NULL, 1, 3, '2021-05-02', '2021-05-02');
INSERT INTO analysis_state_change (analysis_id, initial_state, updated_state, updated_at) VALUES
	('a1', 'UNPUBLISHED', 'PUBLISHED', '2021-06-04 12:00:00'), ('a1', 'UNPUBLISHED', 'PUBLISHED', '2021-06-01 12:00:00'),
	('a1', 'PUBLISHED', 'UNPUBLISHED', '2021-06-02 12:00:00'), ('a3', 'UNPUBLISHED', 'SUPPRESSED', '2021-06-03');
INSERT INTO file VALUES ('not-a-uuid', 'a1', 'S', 'f.bam', 9007199254740993, 'ABCDEFABCDEFABCDEFABCDEFABCDEFAB', 'controlled', NULL, 'BAM'),
	('o2', 'a2', 'S', 'f.bam', 1, 'abcdefabcdefabcdefabcdefabcdefab', 'open', 'reads', 'BAM'), ('o1', 'a2', 'S', 'e.bai', 1, 'x', 'open', 'index', 'BAI');
INSERT INTO info VALUES ('S', 'Study', '{"pi": "n"}'), ('not-a-uuid', 'File', '{"k": {"z": null, "y": 1}}'), ('a1', 'Analysis', '{"old": 1}'), ('d1', 'Donor', '{"age": 5}');
INSERT INTO donor VALUES ('d1', 'S', 'D-1', 'Male');
INSERT INTO specimen VALUES ('p1', 'd1', 'P-1', 'Normal', NULL, NULL, 'Blood', 'Normal'), ('p2', 'd1', 'P-2', 'Tumour', NULL, NULL, 'Solid', 'Tumour');
INSERT INTO sample VALUES ('s1', 'p1', 'SA-1', 'DNA', NULL, NULL), ('s2', 'p2', 'SA-2', 'RNA', NULL, 'SA-1');
INSERT INTO sampleset VALUES ('a1', 's1'), ('a1', 's2'), ('a2', 's1');
`

func at(url string) connection.Settings { return connection.Settings{URL: url, URLKey: "--from"} }

// TestDatabase copies from the tables of Song 5.2, of the stage after it and of 5.3.
func TestDatabase(t *testing.T) {
	for version, tt := range map[string]struct{ more, options string }{
		"5.2":       {"", "null"},
		"between":   {`ALTER TABLE analysis_schema ADD COLUMN file_types text[]; UPDATE analysis_schema SET file_types = '{BAM,BAI}' WHERE id = 1;`, `["BAM","BAI"]`},
		"5.3":       {`ALTER TABLE analysis_schema ADD COLUMN options jsonb; UPDATE analysis_schema SET options = '{"fileTypes": ["BAM"], "externalValidations": null}' WHERE id = 1; UPDATE analysis_schema SET options = 'null' WHERE id = 2;`, `["BAM"]`},
		"5.3 unset": {`ALTER TABLE analysis_schema ADD COLUMN options jsonb;`, "null"},
	} {
		t.Run(version, func(t *testing.T) {
			url := storetest.PostgresURL(t)
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close(t.Context()) }()
			if _, err := conn.Exec(t.Context(), tables+tt.more); err != nil {
				t.Fatal(err)
			}
			open := func() fromsong.Source {
				from, err := fromsong.OpenDatabase(t.Context(), at(url), time.FixedZone("x", 2*3600))
				if err != nil {
					t.Fatal(err)
				}
				return from
			}
			w := newTarget(t, storetest.Open(t))
			from := open()
			report := w.run(from)
			if err := from.Close(t.Context()); err != nil {
				t.Error(err)
			}
			want := &fromsong.Report{
				Studies: 3, StudiesAdded: 2, Types: 4, TypesAdded: 4, Files: 3, StateChanges: 4,
				Analyses: map[datamodel.ImportResult]int{datamodel.ImportAdded: 4, datamodel.ImportSkipped: 2},
				States:   map[datamodel.AnalysisState]int{datamodel.StateUnpublished: 1, datamodel.StatePublished: 2, datamodel.StateSuppressed: 1},
				Skipped: []string{
					"analysis a5: it has no analysis type",
					"analysis a6: the id or the state of the analysis is not valid",
					"study a b with its analyses: the id of a study must start with a letter or a digit and contain only letters, digits, dots, " +
						"underscores and hyphens",
				},
			}
			slices.Sort(report.Skipped) // a database has an order of its own
			if diff := cmp.Diff(want, report); diff != "" {
				t.Error(diff)
			}
			checkCopied(t, w, tt.options)
			from = open()
			defer func() { _ = from.Close(t.Context()) }()
			if r := w.run(from); r.Analyses[datamodel.ImportEqual] != 4 || r.StudiesAdded+r.TypesAdded != 0 {
				t.Errorf("again: %+v", r)
			}
		})
	}
}

func checkCopied(t *testing.T, w target, options string) {
	t.Helper()
	for id, fields := range map[string]map[string]string{
		"S/a1": {
			"createdAt": "2021-05-01T08:00:00.123456Z", "updatedAt": "2021-06-04T10:00:00.000000Z", "firstPublishedAt": "2021-06-01T10:00:00.000000Z",
			"publishedAt": "2021-06-04T10:00:00.000000Z", "analysisStateHistory.#": "3", "analysisType": `{"name":"one","version":1}`,
			"experiment": `{"n":1.50,"tool":"x"}`, "files.0.objectId": "not-a-uuid", "files.0.fileSize": "9007199254740993", "files.0.dataType": "",
			"files.0.fileMd5sum": "ABCDEFABCDEFABCDEFABCDEFABCDEFAB", "files.0.info.k.y": "1", "info": "",
			"samples.#.submitterSampleId": `["SA-1","SA-2"]`, "samples.0.donor": `{"gender":"Male","donorId":"d1","studyId":"S","submitterDonorId":"D-1","info":{"age":5}}`,
			"samples.1.specimen.tumourNormalDesignation": "Tumour", "samples.1.matchedNormalSubmitterSampleId": "SA-1", "samples.0.matchedNormalSubmitterSampleId": "",
		},
		"S/a2": {"samples": `[{"submitterSampleId":"in-data"}]`, "files.#.objectId": `["o1","o2"]`, "analysisType.version": "2", "analysisState": "UNPUBLISHED"},
		"S/a3": {"analysisType.version": "3", "analysisState": "SUPPRESSED", "files": "[]", "publishedAt": ""},
		"T/a4": {"createdAt": "1969-12-31T22:00:00.000000Z", "analysisType.name": "two"},
	} {
		study, name, _ := strings.Cut(id, "/")
		body := w.body(study, name)
		for path, want := range fields {
			got := gjson.Get(body, path).String()
			if path == "samples.0.donor" { // jsonb orders members
				if gjson.Get(got, "gender").Str != "Male" || gjson.Get(got, "info.age").Int() != 5 || gjson.Get(got, "submitterDonorId").Str != "D-1" {
					t.Errorf("%s: donor %s", id, got)
				}
				continue
			}
			if got != want {
				t.Errorf("%s: %s is %q, want %q", id, path, got, want)
			}
		}
	}
	v, err := w.store.AnalysisType(t.Context(), "one", 1)
	if err != nil || gjsonOf(v.Options.FileTypes) != options || !v.CreatedAt.Equal(time.Date(2019, 12, 31, 22, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v, %v", v, err)
	}
	if s, err := w.Study(t.Context(), "S"); err != nil || string(s.Info) != `{"pi": "n"}` || s.Organization != "Org" {
		t.Errorf("%+v, %v", s, err)
	}
	if e, err := w.Entity(t.Context(), "not-a-uuid"); err != nil || e.AnalysisID != "a1" {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestLargeAnalyses: the larger the analyses, the fewer are read at once.
func TestLargeAnalyses(t *testing.T) {
	url := storetest.PostgresURL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), tables+`INSERT INTO analysis_data (id, data) VALUES (9, jsonb_build_object('x', repeat('x', 2000000)));
		INSERT INTO analysis SELECT 'l' || n, 'T', 'PUBLISHED', 1, 9, '2022-01-01', '2022-01-01' FROM generate_series(1, 37) n`)
	if err != nil {
		t.Fatal(err)
	}
	from, err := fromsong.OpenDatabase(t.Context(), at(url), time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close(t.Context()) }()
	var sizes []int
	_, err = from.Analyses(t.Context(), "T", func(analyses []datamodel.ImportedAnalysis) error {
		sizes = append(sizes, len(analyses))
		return nil
	})
	if diff := cmp.Diff([]int{20, 9, 8, 3}, sizes); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// gjsonOf returns a list as JSON.
func gjsonOf(list []string) string {
	if list == nil {
		return "null"
	}
	return `["` + strings.Join(list, `","`) + `"]`
}

// TestNoSong: a database without Song's tables, and one that does not answer, are clear errors.
func TestNoSong(t *testing.T) {
	if _, err := fromsong.OpenDatabase(t.Context(), at(storetest.PostgresURL(t)), time.UTC); core.CodeOf(err) != core.CodeUnavailable || !strings.Contains(err.Error(), "analysis_schema") {
		t.Error(err)
	}
	if _, err := fromsong.OpenDatabase(t.Context(), at("postgres://x:secret@127.0.0.1:1/song"), time.UTC); core.CodeOf(err) != core.CodeUnavailable || strings.Contains(core.MessageOf(err), "secret") {
		t.Error(err)
	}
}

// TestSecuredDatabase: connections use the files of TLS, and what is wrong is said with the flag to change, without the password.
func TestSecuredDatabase(t *testing.T) {
	pki := os.Getenv("TUTTI_TEST_POSTGRES_TLS")
	if pki == "" {
		t.Fatal("TUTTI_TEST_POSTGRES_TLS is not set: eval \"$(deploy/local/postgres/start | sed 's/^/export /')\"")
	}
	authority, err := testkit.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	other, ca := filepath.Join(t.TempDir(), "other.pem"), filepath.Join(pki, "ca.pem")
	if err := os.WriteFile(other, authority.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	plain := storetest.PostgresURL(t)
	conn, err := pgx.Connect(t.Context(), plain)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), tables); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(plain)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Del("sslmode")
	u.RawQuery = q.Encode()
	password, _ := u.User.Password()
	for name, tt := range map[string]struct {
		address       string
		files         tlsconfig.Files
		message, hint string
	}{
		"right":             {u.String(), tlsconfig.Files{CAFile: ca}, "", ""},
		"another authority": {u.String(), tlsconfig.Files{CAFile: other}, "Song's PostgreSQL cannot be used: its certificate is signed by an unknown authority", "set --ca-file to a PEM file"},
		"name":              {u.String(), tlsconfig.Files{CAFile: ca, ServerName: "db.example"}, "its certificate is for another host name", "set --server-name to"},
		"no file":           {u.String(), tlsconfig.Files{CAFile: filepath.Join(pki, "none")}, "--ca-file: " + filepath.Join(pki, "none") + " cannot be read", "set the path"},
		"no key":            {u.String(), tlsconfig.Files{ClientCertFile: filepath.Join(pki, "client.pem")}, "--client-key-file: is missing", ""},
		"sslmode":           {plain, tlsconfig.Files{CAFile: ca}, "--from has the parameter sslmode", "with --ca-file, --client-cert-file or --server-name all"},
		"not a URL":         {"postgres://x:" + password + "@h:port/db", tlsconfig.Files{}, "--from is not the URL of a PostgreSQL database", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tt.files.Flags = true
			from, err := fromsong.OpenDatabase(t.Context(), connection.Settings{URL: tt.address, URLKey: "--from", TLS: tt.files}, time.UTC)
			if err == nil {
				defer func() { _ = from.Close(t.Context()) }()
				if studies, err := from.Studies(t.Context()); err != nil || len(studies) != 3 {
					t.Errorf("%d studies, %v", len(studies), err)
				}
			}
			said := core.MessageOf(err) + " | " + core.HintOf(err)
			if (err == nil) != (tt.message == "") || !strings.Contains(said, tt.message) || !strings.Contains(said, tt.hint) || strings.Contains(said, password) {
				t.Errorf("got %q", said)
			}
		})
	}
}
