package fromsong

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/store/connection"
)

const (
	// firstPage and maxPage are the numbers of analyses that are read at once, pageBytes their approximate size.
	firstPage = 20
	maxPage   = 500
	pageBytes = 16 << 20
)

// database reads Song's PostgreSQL in one read-only snapshot.
type database struct {
	conn *pgx.Conn
	tx   pgx.Tx
	zone *time.Location
	// options and fileTypes report whether analysis_schema has the columns options and file_types, which depend on Song's version.
	options, fileTypes bool
}

// OpenDatabase connects to Song's database. zone is the time zone of Song's process, in which its times are stored.
func OpenDatabase(ctx context.Context, from connection.Settings, zone *time.Location) (Source, error) {
	to, err := connection.New(from)
	if err != nil {
		return nil, err
	}
	to.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // a connection pooler may share the names of prepared statements
	conn, err := to.Connect(ctx)
	if _, explained := errors.AsType[*core.Error](err); explained {
		return nil, &core.Error{Code: core.CodeOf(err), Message: "Song's " + core.MessageOf(err), Hint: core.HintOf(err), Err: err}
	}
	if err != nil {
		return nil, &core.Error{
			Code: core.CodeUnavailable, Message: "Song's database cannot be opened", Hint: "check the address, the user, the password and the name of the database", Err: err,
		}
	}
	d := &database{conn: conn, zone: zone}
	if d.tx, err = conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}); err == nil {
		err = d.probe(ctx)
	}
	if err != nil {
		return nil, errors.Join(readError("reading Song's tables", err), d.Close(ctx))
	}
	return d, nil
}

// readError is the error of a statement.
func readError(doing string, err error) error {
	return core.WrapError(core.CodeUnavailable, doing, err)
}

// probe finds out which columns exist.
func (d *database) probe(ctx context.Context) error {
	rows, err := d.tx.Query(ctx, `SELECT column_name FROM information_schema.columns
		WHERE table_name = 'analysis_schema' AND table_schema = ANY (current_schemas(false))`)
	if err != nil {
		return fmt.Errorf("listing columns: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("listing columns: %w", err)
	}
	if len(names) == 0 {
		return errors.New("the database has no table analysis_schema: it is not Song's, or of a version before 4")
	}
	for _, name := range names {
		d.options = d.options || name == "options"
		d.fileTypes = d.fileTypes || name == "file_types"
	}
	return nil
}

// Close implements Source.
func (d *database) Close(ctx context.Context) error {
	if d.tx != nil {
		_ = d.tx.Rollback(ctx) // read only
	}
	if err := d.conn.Close(ctx); err != nil {
		return readError("closing Song's database", err)
	}
	return nil
}

// at returns the instant of a time that Song stored without a zone.
func (d *database) at(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), d.zone)
}

// Studies implements Source.
func (d *database) Studies(ctx context.Context) ([]datamodel.Study, error) {
	rows, err := d.tx.Query(ctx, `SELECT s.id, coalesce(s.name, ''), coalesce(s.organization, ''), coalesce(s.description, ''), coalesce(i.info::text, '')
		FROM study s LEFT JOIN info i ON i.id = s.id AND i.id_type::text = 'Study' ORDER BY s.id`)
	if err != nil {
		return nil, readError("reading the studies of Song", err)
	}
	studies, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (datamodel.Study, error) {
		var s datamodel.Study
		var info string
		err := row.Scan(&s.ID, &s.Name, &s.Organization, &s.Description, &info)
		if isObject(info) && info != "{}" {
			s.Info = json.RawMessage(info)
		}
		return s, err
	})
	if err != nil {
		return nil, readError("reading the studies of Song", err)
	}
	return studies, nil
}

func isObject(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), "{") }

// Types implements Source.
func (d *database) Types(ctx context.Context) ([]datamodel.AnalysisType, error) {
	options := "''"
	switch {
	case d.options:
		options = "coalesce(options::text, '')"
	case d.fileTypes:
		options = "coalesce(json_build_object('fileTypes', file_types)::text, '')"
	}
	// After an interrupted registration the version is null; it follows from the order of registration.
	rows, err := d.tx.Query(ctx, `SELECT name, coalesce(version, rank() OVER (PARTITION BY name ORDER BY id))::bigint, schema::text, created_at, `+
		options+` FROM analysis_schema ORDER BY id`)
	if err != nil {
		return nil, readError("reading the analysis types of Song", err)
	}
	types, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (datamodel.AnalysisType, error) {
		var t datamodel.AnalysisType
		var schema, settings string
		var created *time.Time
		if err := row.Scan(&t.Name, &t.Version, &schema, &created, &settings); err != nil {
			return t, err
		}
		t.Schema = json.RawMessage(schema)
		t.CreatedAt = time.Unix(0, 0)
		if created != nil {
			t.CreatedAt = d.at(*created)
		}
		if settings != "" && json.Unmarshal([]byte(settings), &t.Options) != nil {
			return t, fmt.Errorf("the options of the analysis type %s are not readable", t.Name)
		}
		return t, nil
	})
	if err != nil {
		return nil, readError("reading the analysis types of Song", err)
	}
	return types, nil
}

// Analyses implements Source.
func (d *database) Analyses(ctx context.Context, study string, each func([]datamodel.ImportedAnalysis) error) (int, error) {
	after, afterID := time.Time{}, ""
	for limit := firstPage; ; {
		page, ids, err := d.page(ctx, study, after, afterID, limit)
		if err != nil || len(page) == 0 {
			return 0, err
		}
		last := len(page) - 1
		after, afterID = page[last].CreatedAt, page[last].ID
		byID := make(map[string]*datamodel.ImportedAnalysis, len(page))
		for i := range page {
			page[i].CreatedAt, page[i].UpdatedAt = d.at(page[i].CreatedAt), d.at(page[i].UpdatedAt)
			byID[page[i].ID] = &page[i]
		}
		for _, read := range []func(context.Context, []string, map[string]*datamodel.ImportedAnalysis) error{d.files, d.history, d.samples} {
			if err := read(ctx, ids, byID); err != nil {
				return 0, err
			}
		}
		size := 1
		for i := range page {
			size += len(page[i].Data)
			for _, f := range page[i].Files {
				size += len(f)
			}
		}
		limit = max(1, min(maxPage, pageBytes*len(page)/size))
		if err := each(page); err != nil {
			return 0, err
		}
	}
}

// page reads at most limit analyses after the one that was created at after and has the id afterID, without their files, history and
// samples.
func (d *database) page(ctx context.Context, study string, after time.Time, afterID string, limit int) ([]datamodel.ImportedAnalysis, []string, error) {
	rows, err := d.tx.Query(ctx, `SELECT a.id, a.study_id, coalesce(a.state::text, ''), coalesce(s.name, ''),
			coalesce(s.version, (SELECT count(*) FROM analysis_schema e WHERE e.name = s.name AND e.id <= s.id))::bigint,
			coalesce(a.created_at, 'epoch'), coalesce(a.updated_at, a.created_at, 'epoch'), coalesce(d.data::text, '{}')
		FROM analysis a LEFT JOIN analysis_schema s ON s.id = a.analysis_schema_id LEFT JOIN analysis_data d ON d.id = a.analysis_data_id
		WHERE a.study_id = $1 AND (coalesce(a.created_at, 'epoch'), a.id) > ($2::timestamp, $3)
		ORDER BY coalesce(a.created_at, 'epoch'), a.id LIMIT $4`, study, after, afterID, limit)
	if err != nil {
		return nil, nil, readError("reading the analyses of Song", err)
	}
	var ids []string
	page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (datamodel.ImportedAnalysis, error) {
		var a datamodel.ImportedAnalysis
		var data string
		err := row.Scan(&a.ID, &a.Study, &a.State, &a.Type.Name, &a.Type.Version, &a.CreatedAt, &a.UpdatedAt, &data)
		a.Data = json.RawMessage(data)
		ids = append(ids, a.ID)
		return a, err
	})
	if err != nil {
		return nil, nil, readError("reading the analyses of Song", err)
	}
	return page, ids, nil
}

// files reads the files of analyses.
func (d *database) files(ctx context.Context, ids []string, byID map[string]*datamodel.ImportedAnalysis) error {
	return d.collect(ctx, "reading the files of Song", byID, func(a *datamodel.ImportedAnalysis, text string, _ time.Time) {
		a.Files = append(a.Files, json.RawMessage(text))
	}, `SELECT f.analysis_id, json_strip_nulls(json_build_object('objectId', f.id, 'fileName', f.name, 'fileSize', f.size,
			'fileType', f.type::text, 'fileMd5sum', trim(f.md5), 'fileAccess', f.access::text, 'dataType', f.data_type, 'info', i.info::json))::text, now()::timestamp
		FROM file f LEFT JOIN info i ON i.id = f.id AND i.id_type::text = 'File' WHERE f.analysis_id = ANY ($1) ORDER BY f.analysis_id, f.name, f.id`, ids)
}

// history reads the state changes of analyses.
func (d *database) history(ctx context.Context, ids []string, byID map[string]*datamodel.ImportedAnalysis) error {
	return d.collect(ctx, "reading the state changes of Song", byID, func(a *datamodel.ImportedAnalysis, text string, at time.Time) {
		from, to, _ := strings.Cut(text, " ")
		a.History = append(a.History, datamodel.StateChange{From: datamodel.AnalysisState(from), To: datamodel.AnalysisState(to), At: d.at(at)})
	}, `SELECT analysis_id, initial_state::text || ' ' || updated_state::text, updated_at
		FROM analysis_state_change WHERE analysis_id = ANY ($1) ORDER BY updated_at, id`, ids)
}

// samples reads the samples of analyses whose data has none: Song 5.2 keeps them in tables of their own.
func (d *database) samples(ctx context.Context, ids []string, byID map[string]*datamodel.ImportedAnalysis) error {
	lists := map[string][]string{}
	err := d.collect(ctx, "reading the samples of Song", byID, func(a *datamodel.ImportedAnalysis, text string, _ time.Time) {
		lists[a.ID] = append(lists[a.ID], text)
	}, `SELECT m.analysis_id, (json_strip_nulls(json_build_object('sampleId', s.id, 'specimenId', s.specimen_id, 'submitterSampleId', s.submitter_id,
			'sampleType', s.type::text, 'info', si.info::json,
			'specimen', json_build_object('specimenId', p.id, 'donorId', p.donor_id, 'submitterSpecimenId', p.submitter_id,
				'tumourNormalDesignation', p.tumour_normal_designation::text, 'specimenTissueSource', p.tissue_source::text, 'specimenType', p.type::text,
				'info', pi.info::json),
			'donor', json_build_object('donorId', o.id, 'studyId', o.study_id, 'submitterDonorId', o.submitter_id, 'gender', o.gender::text, 'info', oi.info::json)
		))::jsonb || jsonb_build_object('matchedNormalSubmitterSampleId', s.matched_normal_submitter_sample_id))::text, now()::timestamp
		FROM sampleset m JOIN sample s ON s.id = m.sample_id JOIN specimen p ON p.id = s.specimen_id JOIN donor o ON o.id = p.donor_id
			LEFT JOIN info si ON si.id = s.id AND si.id_type::text = 'Sample' LEFT JOIN info pi ON pi.id = p.id AND pi.id_type::text = 'Specimen'
			LEFT JOIN info oi ON oi.id = o.id AND oi.id_type::text = 'Donor'
		WHERE m.analysis_id = ANY ($1) ORDER BY m.analysis_id, s.id`, ids)
	if err != nil {
		return err
	}
	for id, list := range lists {
		a := byID[id]
		var members map[string]json.RawMessage
		if json.Unmarshal(a.Data, &members) != nil || members["samples"] != nil {
			continue // newer versions store the samples in the data
		}
		joined := `"samples":[` + strings.Join(list, ",") + `]}`
		if len(members) > 0 {
			joined = "," + joined
		}
		text := strings.TrimSpace(string(a.Data))
		a.Data = json.RawMessage(strings.TrimSuffix(text, "}") + joined)
	}
	return nil
}

// collect calls each for the rows of a statement: the id of an analysis, a text and a time.
func (d *database) collect(ctx context.Context, doing string, byID map[string]*datamodel.ImportedAnalysis,
	each func(a *datamodel.ImportedAnalysis, text string, at time.Time), statement string, ids []string,
) error {
	rows, err := d.tx.Query(ctx, statement, ids)
	if err != nil {
		return readError(doing, err)
	}
	var id, text string
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &text, &at}, func() error {
		if a := byID[id]; a != nil {
			each(a, text, at)
		}
		return nil
	})
	if err != nil {
		return readError(doing, err)
	}
	return nil
}
