package system

import (
	"bufio"
	"net/http"

	"tutti/http/api"
)

const contentTypeTar = "application/x-tar"

// backup streams a backup. The status is sent with the first bytes. After an error the connection is aborted, so that the client does
// not take a part of a backup for a whole one.
func (s *Surface) backup(w http.ResponseWriter, r *http.Request) error {
	b := &backupBody{w: w}
	if r.Method == http.MethodHead {
		b.begin()
		return nil
	}
	buffered := bufio.NewWriterSize(b, api.ListChunk)
	err := s.ports.Backups.Backup(r.Context(), buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err != nil && b.begun {
		return api.AbortResponse(r, err)
	}
	return err
}

// backupBody is the body of a backup.
type backupBody struct {
	w     http.ResponseWriter
	begun bool
}

func (b *backupBody) begin() {
	b.begun = true
	b.w.Header().Set("Content-Type", contentTypeTar)
	b.w.Header().Set("Content-Disposition", `attachment; filename="tutti-backup.tar"`)
	b.w.WriteHeader(http.StatusOK)
}

// Write implements io.Writer.
func (b *backupBody) Write(p []byte) (int, error) {
	if !b.begun {
		b.begin()
	}
	if err := api.WriteChunks(b.w, p); err != nil {
		return 0, err
	}
	return len(p), nil
}
