package metadata

import (
	"context"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/core"
	"tutti/internal/store"
)

const (
	// fileStripes bounds the locks of a transaction: MD5 sums that fall on one stripe wait for each other.
	fileStripes = 64
	// filesAtOnce is how many files one statement writes or asks for.
	filesAtOnce = 32
)

// texts are statements that name several values, by how many.
type texts struct {
	insertFiles [filesAtOnce + 1]string
	findFiles   [filesAtOnce + 1]string
}

func newTexts() texts {
	var t texts
	for n := 1; n <= filesAtOnce; n++ {
		var insert strings.Builder
		insert.WriteString("INSERT INTO analysis_file (study, analysis_id, md5, name) VALUES ")
		for i := range n {
			if i > 0 {
				insert.WriteByte(',')
			}
			insert.WriteString("($1,$2,$" + strconv.Itoa(2*i+3) + ",$" + strconv.Itoa(2*i+4) + ")")
		}
		t.insertFiles[n] = insert.String()
		t.findFiles[n] = "SELECT md5, analysis_id, name FROM analysis_file WHERE study = $1 AND analysis_id <> $2 AND md5 IN (" +
			parameters(3, n) + ")"
	}
	return t
}

// parameters returns n parameters from $first on.
func parameters(first, n int) string {
	var list strings.Builder
	for i := range n {
		if i > 0 {
			list.WriteByte(',')
		}
		list.WriteString("$" + strconv.Itoa(first+i))
	}
	return list.String()
}

// insertFiles stores the files of an analysis that has none stored.
func (r *Repository) insertFiles(ctx context.Context, tx *store.Tx, study, id string, files []file) error {
	for some := range slices.Chunk(files, filesAtOnce) {
		values := append(make([]any, 0, 2+2*len(some)), study, id)
		for _, f := range some {
			values = append(values, f.md5, f.name)
		}
		if _, err := tx.ExecContext(ctx, r.texts.insertFiles[len(some)], values...); err != nil {
			return store.Fault("storing the files of an analysis", err)
		}
	}
	return nil
}

// refuseDuplicates returns CodeConflict when another analysis of the study than id has a file of the same MD5 sum as one of
// files, and keeps others from storing such a file until the transaction has ended. It locks, so it comes before everything else.
// positions are those of the files in what was sent.
func (r *Repository) refuseDuplicates(ctx context.Context, tx *store.Tx, study, id string, files []file, positions []int) error {
	if len(files) == 0 {
		return nil
	}
	if err := tx.Lock(ctx, stripes(study, files)...); err != nil {
		return err
	}
	type holder struct{ analysis, name string }
	held := map[string]holder{}
	for some := range slices.Chunk(files, filesAtOnce) {
		values := append(make([]any, 0, 2+len(some)), study, id)
		for _, f := range some {
			values = append(values, f.md5)
		}
		rows, err := tx.QueryContext(ctx, r.texts.findFiles[len(some)], values...)
		if err != nil {
			return store.Fault("looking for files of the same MD5 sum", err)
		}
		for rows.Next() {
			var md5 string
			var h holder
			if err := rows.Scan(&md5, &h.analysis, &h.name); err != nil {
				_ = rows.Close()
				return store.Fault("looking for files of the same MD5 sum", err)
			}
			held[md5] = h
		}
		_ = rows.Close()
		if err := rows.Err(); err != nil {
			return store.Fault("looking for files of the same MD5 sum", err)
		}
	}
	if len(held) == 0 {
		return nil
	}
	var names []string
	var faults []core.Violation
	for i, f := range files {
		if h, ok := held[f.md5]; ok {
			names = append(names, f.name)
			faults = append(faults, core.Violation{
				Pointer: "/files/" + strconv.Itoa(positions[i]) + "/fileMd5sum",
				Message: "is that of " + strconv.Quote(shortened(h.name)) + " of the analysis " + h.analysis, Keyword: "duplicate",
			})
		}
	}
	return duplicates("the study has files of the same MD5 sum already: ", names, faults)
}

// stripes returns the keys that stand for the MD5 sums of files in a study.
func stripes(study string, files []file) []string {
	var taken [fileStripes]bool
	keys := make([]string, 0, min(len(files), fileStripes))
	for _, f := range files {
		h := fnv.New32a()
		_, _ = h.Write([]byte(f.md5)) // never fails
		if stripe := h.Sum32() % fileStripes; !taken[stripe] {
			taken[stripe] = true
			keys = append(keys, "analysis_file/"+study+"/"+strconv.Itoa(int(stripe)))
		}
	}
	return keys
}

// arrived returns those of files, and their positions, whose MD5 sum is not among those that an analysis had before.
func arrived(before, files []file) (fresh []file, positions []int) {
	had := make(map[string]struct{}, len(before))
	for _, f := range before {
		had[f.md5] = struct{}{}
	}
	for i, f := range files {
		if _, ok := had[f.md5]; !ok {
			fresh, positions = append(fresh, f), append(positions, i)
		}
	}
	return fresh, positions
}

// sameFiles reports whether two lists store the same rows.
func sameFiles(a, b []file) bool {
	return slices.EqualFunc(a, b, func(x, y file) bool { return x.name == y.name && x.md5 == y.md5 })
}
