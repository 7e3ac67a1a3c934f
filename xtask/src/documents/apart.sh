# Runs the script $out/script.sh in namespaces of its own: nothing that it does outlasts it. The
# folder is like a clone of $repository, and what the commands write there stays there.

set -eu
ip link set lo up
# The addresses that documents use in examples.
ip link add eth0 type veth peer name far
ip address add 192.0.2.7/24 dev eth0
ip address add 10.0.0.5/8 dev eth0
ip link set far up
ip link set eth0 up
mount -t proc proc /proc
mount -t tmpfs tmpfs "$clone"
mount -t tmpfs tmpfs /dev/shm
for folder in etc run usr/local; do
    mkdir -p "$clone/.over/$folder/upper" "$clone/.over/$folder/work"
    over="$clone/.over/$folder"
    mount -t overlay -o "lowerdir=/$folder,upperdir=$over/upper,workdir=$over/work" overlay \
        "/$folder"
done
echo "127.0.0.1 cache.example HOST" >> /etc/hosts
# A clone, in which target/release has the programs that are tried.
mkdir "$clone/.over/upper" "$clone/.over/work" "$clone/glimmer" "$clone/home"
over="$clone/.over"
mount -t overlay -o "lowerdir=$repository,upperdir=$over/upper,workdir=$over/work" overlay \
    "$clone/glimmer"
mount -t tmpfs tmpfs "$clone/glimmer/target"
ln -s "$programs" "$clone/glimmer/target/release"
export HOME="$clone/home" PATH="$stand_ins:$programs:$PATH"
cd "$clone/glimmer"
exec bash "$out/script.sh"
