// Package store owns the SQL database of the process: SQLite in the data directory, or PostgreSQL, which several processes can
// share. It opens the database, migrates its tables and runs transactions; only this package and those below it use database
// drivers. connection reaches PostgreSQL, also after it was lost and through a pooler; prepared keeps the statements of SQLite.
//
// Statements are written once for both databases: parameters are $1, $2, …; times are microseconds since 1970 in UTC;
// texts compare by their bytes.
//
// It must not import other packages of tutti than core.
package store
