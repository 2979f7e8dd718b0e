/**
 * `FileAccess` on the system's own descriptors: no link is followed, no opening waits, and where there is a `/proc` an
 * entry of a held directory is reached through the directory's descriptor, not through its name.
 *
 * @since 0.1.0
 */
import { type PlatformError, SystemError, type SystemErrorReason } from "@effect/platform/Error"
import type * as FileSystem from "@effect/platform/FileSystem"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Fs from "node:fs"
import { badResource, FileAccess, type Info, type OpenFile, type Rights } from "../../src/file/FileAccess.ts"

const reasons: { readonly [code: string]: SystemErrorReason } = {
  ENOENT: "NotFound",
  ENOTDIR: "BadResource",
  EISDIR: "BadResource",
  ELOOP: "BadResource",
  ENXIO: "BadResource",
  EACCES: "PermissionDenied",
  EPERM: "PermissionDenied",
  EROFS: "PermissionDenied",
  EEXIST: "AlreadyExists",
  EBUSY: "Busy",
  ETXTBSY: "Busy"
}

const failure = (method: string, path: string) => (cause: NodeJS.ErrnoException): PlatformError =>
  new SystemError({
    reason: reasons[cause.code ?? ""] ?? "Unknown",
    module: "FileSystem",
    method,
    pathOrDescriptor: path,
    syscall: cause.syscall,
    description: cause.message,
    cause
  })

/** One operation of Node's. A descriptor must not be closed under an operation, so none is ever abandoned. */
const operation = <A>(
  method: string,
  path: string,
  run: (done: (error: NodeJS.ErrnoException | null, value: A) => void) => void
): Effect.Effect<A, PlatformError> =>
  Effect.uninterruptible(
    Effect.async<A, PlatformError>((resume) =>
      run((error, value) => resume(error === null ? Effect.succeed(value) : Effect.fail(failure(method, path)(error))))
    )
  )

const typeOf = (stats: Fs.Stats): FileSystem.File.Type =>
  stats.isFile()
    ? "File"
    : stats.isDirectory()
    ? "Directory"
    : stats.isFIFO()
    ? "FIFO"
    : stats.isSocket()
    ? "Socket"
    : stats.isCharacterDevice()
    ? "CharacterDevice"
    : stats.isBlockDevice()
    ? "BlockDevice"
    : stats.isSymbolicLink()
    ? "SymbolicLink"
    : "Unknown"

const infoOf = (stats: Fs.Stats): Info => ({
  type: typeOf(stats),
  device: stats.dev,
  inode: stats.ino,
  links: stats.nlink,
  mode: stats.mode & 0o7777,
  size: stats.size,
  modifiedMs: stats.mtimeMs,
  uid: stats.uid,
  gid: stats.gid
})

const {
  O_CREAT,
  O_DIRECTORY = 0,
  O_EXCL,
  O_NOCTTY = 0,
  O_NOFOLLOW = 0,
  O_NONBLOCK = 0,
  O_RDONLY,
  O_RDWR
} = Fs.constants
const careful = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY

/** Linux's `O_PATH`, which Node does not name: a directory can be held also by who may not list it. */
const O_PATH = process.platform === "linux" ? 0o10000000 : 0

const statOf = (path: string, fd: number): Effect.Effect<Info, PlatformError> =>
  Effect.map(operation<Fs.Stats>("stat", path, (done) => Fs.fstat(fd, done)), infoOf)

const close = (path: string) => (fd: number): Effect.Effect<void> =>
  Effect.ignore(operation<void>("close", path, (done) => Fs.close(fd, (error) => done(error, undefined))))

/** A descriptor of something of this type; nothing stays open of anything else. */
const opened = (method: string, path: string, flags: number, type: FileSystem.File.Type, mode?: number) =>
  Effect.acquireRelease(
    Effect.tap(
      operation<number>(method, path, (done) => Fs.open(path, flags, mode, done)),
      (fd) => Effect.onError(mustBe(method, path, fd, type), () => close(path)(fd))
    ),
    close(path)
  )

const mustBe = (method: string, path: string, fd: number, type: FileSystem.File.Type) =>
  Effect.filterOrFail(
    statOf(path, fd),
    (info) => info.type === type,
    (info) => badResource(method, path, `is no ${type} but a ${info.type}`)
  )

const readFrom = (path: string, fd: number): OpenFile["read"] => (offset, length) =>
  Effect.gen(function*() {
    const bytes = new Uint8Array(length)
    let filled = 0
    while (filled < length) {
      const from = filled
      const got = yield* operation<number>("read", path, (done) =>
        Fs.read(fd, bytes, from, length - from, offset + from, done))
      if (got === 0) {
        break
      }
      filled += got
    }
    return filled === length ? bytes : bytes.subarray(0, filled)
  }).pipe(Effect.uninterruptible)

const plain = (method: string, path: string, run: (done: (error: NodeJS.ErrnoException | null) => void) => void) =>
  operation<void>(method, path, (done) => run((error) => done(error, undefined)))

const overwriteAt = (path: string, fd: number): OpenFile["overwrite"] => {
  const put = (bytes: Uint8Array, from: number, until: number) =>
    Effect.iterate(from, {
      while: (at) => at < until,
      body: (at) =>
        Effect.map(
          operation<number>("write", path, (done) => Fs.write(fd, bytes, at, until - at, at, done)),
          (written) => at + written
        )
    })
  const truncate = (size: number) => plain("truncate", path, (done) => Fs.ftruncate(fd, size, done))
  const own = ({ gid, mode, uid }: Rights) =>
    Effect.gen(function*() {
      const now = yield* statOf(path, fd)
      if (now.uid !== uid || now.gid !== gid) yield* plain("chown", path, (done) => Fs.fchown(fd, uid, gid, done))
      yield* plain("chmod", path, (done) => Fs.fchmod(fd, mode, done))
    })
  return (bytes, rights) =>
    Effect.gen(function*() {
      const { size } = yield* statOf(path, fd)
      yield* Effect.onError(put(bytes, size, bytes.length), () => Effect.ignore(truncate(size)))
      yield* put(bytes, 0, Math.min(size, bytes.length))
      yield* truncate(bytes.length)
      if (rights !== undefined) yield* own(rights)
      yield* plain("sync", path, (done) => Fs.fsync(fd, done))
    }).pipe(Effect.uninterruptible)
}

const fileOf = (path: string) => (fd: number): OpenFile => ({
  info: statOf(path, fd),
  read: readFrom(path, fd),
  overwrite: overwriteAt(path, fd)
})

export interface Options {
  /** Where descriptors have names; default `/proc/self/fd`. Where it is not there, a held directory goes by its name. */
  readonly descriptors?: string
}

export const make = (options: Options = {}): Effect.Effect<FileAccess["Type"]> =>
  Effect.sync(() => {
    const descriptors = options.descriptors ?? "/proc/self/fd"
    const named = Fs.existsSync(descriptors)
    return {
      open: (physical, { write = false } = {}) =>
        Effect.map(
          opened("open", physical, (write ? O_RDWR : O_RDONLY) | careful, "File"),
          fileOf(physical)
        ),
      create: (physical, mode = 0o666) =>
        Effect.map(
          opened("create", physical, O_RDWR | O_CREAT | O_EXCL | careful, "File", mode),
          fileOf(physical)
        ),
      hold: Effect.fnUntraced(function*(physical) {
        const fd = yield* opened("hold", physical, O_RDONLY | O_PATH | O_DIRECTORY | O_NOFOLLOW, "Directory")
        const base = named ? `${descriptors}/${fd}` : physical
        return { info: yield* statOf(physical, fd), at: (name) => `${base}/${name}` }
      })
    }
  })

export const layer = (options?: Options): Layer.Layer<FileAccess> => Layer.effect(FileAccess, make(options))
