# Compiles small programs in parallel. Packages: make, gcc, libc6-dev.
mkdir -p /root/build && cd /root/build || exit 1
for i in 1 2 3 4 5 6; do
	cat >part$i.c <<-END
		int part$i(int n)
		{
			int sum = 0;

			for (int i = 0; i < n; i++)
				sum += i % $i ? i : -1;
			return sum;
		}
	END
done
cat >main.c <<-END
	#include <stdio.h>
	int part1(int), part2(int), part3(int), part4(int), part5(int), part6(int);
	int main(void)
	{
		printf("%d\n", part1(9) + part2(9) + part3(9) + part4(9) + part5(9) + part6(9));
		return 0;
	}
END
printf 'CC = gcc\nCFLAGS = -O1\nmain: main.o part1.o part2.o part3.o part4.o part5.o part6.o\n' >Makefile
make -j4 && ./main
