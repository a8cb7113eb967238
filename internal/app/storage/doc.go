// Package storage owns what tutti keeps: the queue, the store and the index of a configuration, each in the data folder or on another server.
// It opens them for the process and for commands, and backs up, restores and moves the data folder. Files in that folder say that a restore
// or a move has not ended, or that a part was moved away: a part is opened only after checkUsable.
//
// Another engine or database is chosen here, in openEngine and openDatabase; another command on stopped data is in commands.go. Package backup
// has the format of a backup, settings what each part is opened with. It must not import internal/app.
//
// Its tests are in internal/app.
package storage
