# Three writers and readers of one database. Package: sqlite3.
db=/root/d.db
sqlite3 $db 'pragma journal_mode=wal; create table t (writer, n integer, text);' || exit 1
for writer in 1 2 3; do
	{
		echo '.timeout 100000'
		for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
			echo "begin immediate; with recursive r(n) as (values (1) union all select n + 1 from r where n < 40)
				insert into t select $writer, n, hex(n * $n) from r; commit;
				select count(*), max(text) from t where n = $n;"
		done
	} | sqlite3 $db &
done
wait
sqlite3 $db 'create index i on t (n, text); vacuum; pragma integrity_check; select writer, sum(n) from t group by writer;'
[ "$(sqlite3 $db 'select count(*) from t')" = 1440 ]
