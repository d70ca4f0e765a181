"""What a hostile run tries. Each attempt is a row of the table in docs/isolation.md, under the same name.

The code of an attempt runs in the hostile run. It ends without an exception, and with a true `reached`, only
if the attempt succeeds. It knows `victim` (the folder of the other run), `pid` (its process), `hub` and
`node` (the folders of hub and agent), `shared` (a folder in which everybody may write), `program` (one of
root's with the setuid bit), `gpu` (a device node of a GPU that is not the run's) and `port` (where the victim
listens), `own_port` (the same, a port that the agent did not give it), `broker` (the port of the hub's
broker) and `engine` (the folder of the agent's container engine)."""

from __future__ import annotations

MARK = "a-secret-of-the-victim"
SHM_KEY = 0x7EAB1E5
VICTIM = f"""
import ctypes, os, socket, sys, time
held = bytearray(b'{MARK}' * 1000)
for path in ('kept.txt', '/tmp/victim', '/dev/shm/victim'):
    with open(path, 'w') as file: file.write('{MARK}')
    os.chmod(path, 0o644)
libc = ctypes.CDLL(None)
print('shm', libc.shmget({SHM_KEY}, 4096, 0o1666))
server = socket.create_server(('127.0.0.1', int(os.environ['MASTER_PORT'])))
own_server = socket.create_server(('127.0.0.1', 0))
abstract = socket.socket(socket.AF_UNIX)
abstract.bind('\\0victim-' + os.environ['ABSTRACT'])
abstract.listen()
print('address', ctypes.addressof((ctypes.c_char * 1).from_buffer(held)))
print('port', server.getsockname()[1])
print('own_port', own_server.getsockname()[1])
print('up', flush=True)
time.sleep(600)
"""
ATTEMPTS = {
    "Read a file of another run": "reached = mark in open(f'{victim}/work/kept.txt').read()",
    "List the runs of the node": (
        "reached = [name for name in os.listdir(f'{node}/attempts') if name in victim]"
    ),
    "Read what another run has in /tmp": "reached = mark in open('/tmp/victim').read()",
    "Read what another run has in /dev/shm": "reached = mark in open('/dev/shm/victim').read()",
    "Attach shared memory of System V of another run": (
        "libc.shmat.restype = ctypes.c_long\n"
        "libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]\n"
        f"reached = libc.shmat(libc.shmget({SHM_KEY}, 0, 0), None, 0) > 0"
    ),
    "See the processes of another run": (
        "reached = [one for one in os.listdir('/proc') if one.isdecimal() and b'the-victim'"
        " in read(f'/proc/{one}/cmdline')]"
    ),
    "Read the environment of another run": (
        "reached = [one for one in os.listdir('/proc') if one.isdecimal() and mark.encode()"
        " in read(f'/proc/{one}/environ')]"
    ),
    "Read the memory of another run": (
        "with open(f'/proc/{pid}/mem', 'rb', 0) as file:\n"
        "    file.seek(address)\n"
        "    reached = mark.encode() in file.read(100)"
    ),
    "Signal another run": "os.kill(pid, 0); reached = True",
    "Trace another run (ptrace)": "reached = libc.ptrace(0x4206, pid, None, None) == 0",
    "Read the hub's key and database": "reached = mark in open(f'{hub}/secret-key').read()",
    "Read the agent's token": "reached = mark in open(f'{node}/node.json').read()",
    "Write outside of its own folder": "open(f'{shared}/by-the-run', 'w').close(); reached = True",
    "Gain rights by a program with the setuid bit": (
        "out = subprocess.run([program, '-u'], capture_output=True, text=True).stdout.strip()\n"
        "reached = out == '0' and os.getuid() != 0"
    ),
    "Use a GPU of another run": "os.close(os.open(gpu, os.O_RDWR)); reached = True",
    "Make a device node": "os.mknod('disk', 0o600 | stat.S_IFBLK, os.makedev(254, 0)); reached = True",
    "Uncover hidden folders in a namespace of its own": (
        "covers = [node, hub, '/tmp', '/proc']\n"
        "line = '; '.join(f'umount -l {one}' for one in covers) + f'; cat {victim}/work/kept.txt'\n"
        "done = subprocess.run(['unshare', '-Urm', 'sh', '-c', line], capture_output=True, text=True)\n"
        "reached = mark in done.stdout"
    ),
    "Find a way around by /proc or by an inherited descriptor": (
        "roots = [os.open(f'/proc/self/fd/{one}', os.O_PATH) for one in os.listdir('/proc/self/fd')\n"
        "         if os.path.isdir(f'/proc/self/fd/{one}')]\n"
        "paths = [f'/proc/self/fd/{one}/{victim}/work/kept.txt' for one in roots]\n"
        "paths += [f'/proc/{one}/root/{victim}/work/kept.txt' for one in ('1', 'self', 'thread-self')]\n"
        "reached = [path for path in paths if mark.encode() in read(path)]"
    ),
    "Connect to a port that the agent gave to another run": (
        "socket.create_connection(('127.0.0.1', port), 5); reached = True"
    ),
    "Connect to a port that another run opened by itself": (
        "socket.create_connection(('127.0.0.1', own_port), 5); reached = True"
    ),
    "Connect to the hub's broker on this machine": (
        "socket.create_connection(('127.0.0.1', broker), 5); reached = True"
    ),
    "Read the metadata of a cloud's machine": (
        "def fetch(address):\n"
        "    try:\n"
        "        with socket.create_connection((address, 80), 5) as line:\n"
        "            line.sendall(b'GET /latest/meta-data/ HTTP/1.0\\r\\n\\r\\n')\n"
        "            return mark.encode() in line.makefile('rb').read()\n"
        "    except OSError:\n"
        "        return False\n"
        "reached = [address for address in ('169.254.169.254', 'fd00:ec2::254') if fetch(address)]"
    ),
    "Send packets of its own making (raw sockets)": (
        "socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close(); reached = True"
    ),
    "Reach the container engine of the agent": (
        "def connects(path):\n"
        "    with socket.socket(socket.AF_UNIX) as line:\n"
        "        return line.connect_ex(path) == 0\n"
        "paths = (f'{engine}/docker.sock', '/run/docker.sock', '/run/podman/podman.sock')\n"
        "reached = [path for path in paths if connects(path)] or os.listdir(engine)"
    ),
    "Connect to an abstract socket of another run": (
        "socket.socket(socket.AF_UNIX).connect('\\0victim-' + os.environ['ABSTRACT']); reached = True"
    ),
}
HEAD = """
import ctypes, json, os, socket, stat, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
known = json.load(open('known.json'))
globals().update(known['names'])
mark = known['mark']

def read(path):
    try:
        with open(path, 'rb') as file: return file.read()
    except OSError:
        return b''

results = {}
for name, code in known['attempts'].items():
    scope = dict(globals())
    try:
        exec(code, scope)
        results[name] = bool(scope['reached'])
    except Exception as error:
        results[name] = False
        print(name, repr(error), file=sys.stderr)
os.symlink(f'{victim}/work/kept.txt', 'outputs/link')
os.symlink(f'{hub}/secret-key', 'outputs/key')
print('RESULTS', json.dumps(results), flush=True)
"""
BY_LINK = "Have the agent save a foreign file by a link among the outputs"
MEMORY = "Use more memory than it asked for"
PROCESSES = "Start processes without end"
SHM = "Fill /dev/shm beyond its memory"
CPU = "Use more CPU time than it asked for"
DISK, DISK_LIMIT = "Fill the disk", "Use more disk than it asked for"
MIB = 2**20
# Each of these is a run of its own: the code prints "reached" if nothing stops it.
GREEDY = {
    MEMORY: f"held = [bytearray({10 * MIB}) for _ in range(30)]\nprint('reached')",
    PROCESSES: (
        "import os, time\n"
        "for _ in range(4200):\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(600)\n"
        "print('reached')"
    ),
    SHM: (
        "with open('/dev/shm/large', 'wb') as file:\n"
        f"    for _ in range(30): file.write(bytes({10 * MIB}))\n"
        "print('reached')"
    ),
    # Other programs of the machine may take the cores for a while, so the best of many seconds counts.
    # Each is measured, because a run that is held back notices the end of a second late.
    CPU: (
        "import time\n"
        "for _ in range(20):\n"
        "    start, before = time.monotonic(), time.process_time()\n"
        "    while time.monotonic() < start + 1: pass\n"
        "    if time.process_time() - before > 0.15 * (time.monotonic() - start):\n"
        "        print('reached')\n"
        "        break"
    ),
    # As fast as a disk that writes 100 MB in a second: the file system of this test is in memory.
    DISK_LIMIT: (
        "import time\n"
        "with open('large', 'wb') as file:\n"
        f"    for _ in range(40): file.write(bytes({10 * MIB})), time.sleep(0.1)\n"
        "time.sleep(3)\n"
        "print('reached')"
    ),
    DISK: (
        "import os, time\n"
        "with open('large', 'wb') as file:\n"
        "    while os.statvfs('.').f_bavail:\n"
        f"        file.write(bytes({10 * MIB})), time.sleep(0.1)\n"
        "print('reached', flush=True)"
    ),
}
ROWS = (*ATTEMPTS, BY_LINK, *GREEDY)
