# Makes a repository, commits, packs it and reads it. Package: git.
export HOME=/root GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
mkdir -p /root/repository && cd /root/repository && git init -q . || exit 1
for i in 1 2 3; do
	for f in 1 2 3 4 5 6 7 8 9; do
		seq $f $((f * 50 + i)) >file$f
	done
	git add . && git commit -q -m "$i" || exit 1
done
git gc -q && git fsck && git log --stat | cat && git diff HEAD~2 | wc -l
