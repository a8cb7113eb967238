package metadata

import (
	"context"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/core"
	"tutti/internal/metadata/analysis"
	"tutti/internal/store"
)

const (
	// fileStripes bounds the locks of a transaction: MD5 sums that fall on one stripe wait for each other.
	fileStripes = 64
	// maxFilesPerStatement is how many files one statement writes or finds.
	maxFilesPerStatement = 32
)

// placeholders returns a list of n parameters that starts with $first.
func placeholders(first, n int) string {
	var list strings.Builder
	for i := range n {
		if i > 0 {
			list.WriteByte(',')
		}
		list.WriteString("$" + strconv.Itoa(first+i))
	}
	return list.String()
}

// insertFiles stores the files of an analysis that has no stored files yet.
func insertFiles(ctx context.Context, tx *store.Tx, study, id string, files []analysis.File) error {
	for some := range slices.Chunk(files, maxFilesPerStatement) {
		var text strings.Builder
		text.WriteString("INSERT INTO analysis_file (study, analysis_id, md5, name, object_id, access) VALUES ")
		values := append(make([]any, 0, 2+4*len(some)), study, id)
		for i, f := range some {
			if i > 0 {
				text.WriteByte(',')
			}
			text.WriteString("($1,$2," + placeholders(4*i+3, 4) + ")")
			values = append(values, f.MD5, f.Name, f.ObjectID, f.Access)
		}
		if _, err := tx.ExecContext(ctx, text.String(), values...); err != nil {
			return store.WrapError("storing the files of an analysis", err)
		}
	}
	return nil
}

// checkDuplicates returns CodeConflict when another analysis of the study than id has a file with the same MD5 sum as one
// of files, and blocks others from storing one until the transaction ends. Since it locks, it must come first in the transaction.
// positions are the indexes of the files in the submission.
func checkDuplicates(ctx context.Context, tx *store.Tx, study, id string, files []analysis.File, positions []int) error {
	if len(files) == 0 {
		return nil
	}
	if err := tx.Lock(ctx, stripes(study, files)...); err != nil {
		return err
	}
	held := map[string]fileHolder{}
	for some := range slices.Chunk(files, maxFilesPerStatement) {
		if err := findHolders(ctx, tx, study, id, some, held); err != nil {
			return err
		}
	}
	if len(held) == 0 {
		return nil
	}
	var names []string
	var faults []core.Violation
	for i, f := range files {
		if h, ok := held[f.MD5]; ok {
			names = append(names, f.Name)
			faults = append(faults, core.Violation{
				Pointer: "/files/" + strconv.Itoa(positions[i]) + "/fileMd5sum",
				Message: "is that of " + strconv.Quote(analysis.Shortened(h.name)) + " of the analysis " + h.analysis, Keyword: "duplicate",
			})
		}
	}
	return analysis.DuplicateFilesError("the study already has files with the same MD5 sum: ", names, faults)
}

// fileHolder is a file with an MD5 sum, and the analysis that it belongs to.
type fileHolder struct{ analysis, name string }

// findHolders adds to held, by MD5 sum, the files of other analyses of the study than id that equal one of files.
func findHolders(ctx context.Context, tx *store.Tx, study, id string, files []analysis.File, held map[string]fileHolder) error {
	const doing = "finding files with the same MD5 sum"
	values := append(make([]any, 0, 2+len(files)), study, id)
	for _, f := range files {
		values = append(values, f.MD5)
	}
	rows, err := tx.QueryContext(ctx, "SELECT md5, analysis_id, name FROM analysis_file WHERE study = $1 AND analysis_id <> $2 AND md5 IN ("+
		placeholders(3, len(files))+")", values...)
	if err != nil {
		return store.WrapError(doing, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var md5 string
		var h fileHolder
		if err := rows.Scan(&md5, &h.analysis, &h.name); err != nil {
			return store.WrapError(doing, err)
		}
		held[md5] = h
	}
	return store.WrapError(doing, rows.Err())
}

// stripes returns the lock keys for the MD5 sums of files in a study.
func stripes(study string, files []analysis.File) []string {
	var taken [fileStripes]bool
	keys := make([]string, 0, min(len(files), fileStripes))
	for _, f := range files {
		h := fnv.New32a()
		_, _ = h.Write([]byte(f.MD5)) // never fails
		if stripe := h.Sum32() % fileStripes; !taken[stripe] {
			taken[stripe] = true
			keys = append(keys, "analysis_file/"+study+"/"+strconv.Itoa(int(stripe)))
		}
	}
	return keys
}

// addedFiles returns the files, and their positions, whose MD5 sum the analysis did not have before.
func addedFiles(before, files []analysis.File) (fresh []analysis.File, positions []int) {
	had := make(map[string]struct{}, len(before))
	for _, f := range before {
		had[f.MD5] = struct{}{}
	}
	for i, f := range files {
		if _, ok := had[f.MD5]; !ok {
			fresh, positions = append(fresh, f), append(positions, i)
		}
	}
	return fresh, positions
}

// sameFiles reports whether two lists store the same rows.
func sameFiles(a, b []analysis.File) bool {
	return slices.EqualFunc(a, b, func(x, y analysis.File) bool {
		return x.Name == y.Name && x.MD5 == y.MD5 && x.ObjectID == y.ObjectID && x.Access == y.Access
	})
}
