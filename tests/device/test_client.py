"""The protocol client: takes only this session's answers, repeats what is lost, and says what is wrong."""

from __future__ import annotations

import dataclasses

import pytest

from harness.deadline import Deadline
from harness.device.client import Device, RebootedError, SilenceError, UnsupportedError, VersionMismatchError
from harness.errors import DeviceError
from harness.wire import messages as wire
from harness.wire.frame import encode_frame
from tests.device.fakes import QUICK, FakeDevice, FakeLink, LossyLink, fault_record, nonces, report
from tests.examples import seeds
from tests.patience import patient


def soon() -> Deadline:
    return patient()


def opened(device: FakeDevice) -> Device:
    device.boot()
    client = Device(FakeLink(device), nonces=nonces(), policy=QUICK)
    client.hello(soon())
    return client


def test_hello_is_found_behind_garbage_and_boot_text() -> None:
    texts: list[str] = []
    device = FakeDevice()
    device.boot()
    client = Device(FakeLink(device), nonces=nonces(), policy=QUICK, on_text=texts.append)
    assert client.hello(soon()).board == "fake"
    assert texts == [f"tflm-harness 1.2 board=fake build={'ab' * 16}"]
    assert client.counts.damaged == 1


def test_an_answer_of_an_earlier_session_is_never_taken() -> None:
    """A device sent a result late, into the next session: its nonce gives it away."""
    device = FakeDevice()
    client = opened(device)
    late = wire.to_frame(report(1000, "OK", digest=7), nonce=999, sequence=2)
    device.out += encode_frame(late)
    assert client.trial(1000, soon()).output_digest != 7
    assert client.counts.stale == 1


def test_an_answer_to_an_earlier_request_is_never_taken() -> None:
    device = FakeDevice()
    client = opened(device)
    device.out += encode_frame(wire.to_frame(report(1000, "OK", digest=7), nonce=1, sequence=1))
    assert client.trial(1000, soon()).output_digest != 7


def test_an_echo_of_the_request_is_never_taken() -> None:
    device = FakeDevice()
    client = opened(device)
    device.out += encode_frame(wire.to_frame(wire.PingRequest(b"x"), nonce=1, sequence=2))
    client.ping(b"hello", soon())


def test_a_repeated_request_is_not_carried_out_twice() -> None:
    """The answer of a trial was lost: the trial must not run again."""
    device = FakeDevice()
    client = opened(device)
    answers: list[bytes] = []

    class Deaf(FakeLink):
        def read(self, deadline: Deadline) -> bytes:
            data = super().read(deadline)
            answers.append(data)
            return b"" if len([a for a in answers if a]) == 1 else data

    client.link = Deaf(device)
    assert client.trial(2000, soon()).status is wire.TrialStatus.OK
    assert device.trials == [2000]
    assert client.counts.retransmissions >= 1


@pytest.mark.parametrize("seed", seeds(20))
def test_through_a_lossy_line_every_answer_is_right_or_an_error_of_the_link(seed: int) -> None:
    device = FakeDevice()
    device.boot()
    client = Device(LossyLink(FakeLink(device), 0.01, seed), nonces=nonces(), policy=QUICK)
    try:
        client.hello(soon())
        for size in range(990, 1010):
            answer = client.trial(size, soon())
            assert answer.arena_bytes == size
            assert (answer.status is wire.TrialStatus.OK) == (size >= 1000)
            client.ping(bytes([size & 0xFF]) * 64, soon())
    except SilenceError:
        pass


def test_a_newer_minor_version_still_talks() -> None:
    assert opened(FakeDevice(minor=7))._nonce == 1


def test_another_major_version_is_refused_with_both_numbers() -> None:
    device = FakeDevice(major=2, minor=3)
    device.boot()
    client = Device(FakeLink(device), nonces=nonces(), policy=QUICK)
    with pytest.raises(VersionMismatchError, match=r"speaks protocol 2\.3, this harness 1\.2"):
        client.hello(soon())


def test_what_a_device_cannot_do_is_told() -> None:
    with pytest.raises(UnsupportedError, match="cannot do Environment"):
        opened(FakeDevice()).environment(soon())


def test_silence_names_how_often_was_asked() -> None:
    device = FakeDevice()
    client = opened(device)
    device.hangs = True
    with pytest.raises(SilenceError, match=r"does not answer Ping \(8 sendings\)") as silence:
        client.ping(b"", soon())
    assert silence.value.stage is None


def test_a_line_that_damages_every_answer_is_told_apart_from_silence() -> None:
    class Crossed(FakeLink):
        spoils = False

        def read(self, deadline: Deadline) -> bytes:
            data = super().read(deadline)
            return data[:-3] + b"\x55\x55" + data[-1:] if self.spoils and len(data) > 8 else data

    device = FakeDevice()
    device.boot()
    link = Crossed(device)
    client = Device(link, nonces=nonces(), policy=QUICK)
    client.hello(soon())
    link.spoils = True
    with pytest.raises(SilenceError, match=r"answers to Ping is damaged .* \(24 sendings, \d+ frames"):
        client.ping(b"0123456789", soon())


def test_a_device_that_works_is_waited_for_and_its_stage_is_told() -> None:
    def hang(device: FakeDevice, _size: int) -> None:
        device.hangs = True

    client = opened(FakeDevice(below=hang))
    with pytest.raises(SilenceError, match="last in stage allocate") as silence:
        client.trial(10, Deadline.after(0.2))
    assert silence.value.stage is wire.Stage.ALLOCATE


def test_a_reboot_is_noticed_by_the_boot_line_or_by_the_lost_session() -> None:
    client = opened(FakeDevice(below=lambda device, size: device.die(fault_record("HARD", size))))
    with pytest.raises(RebootedError):
        client.trial(10, soon())
    device = FakeDevice()
    client = opened(device)
    device.boot()
    device.out.clear()  # the boot line was lost
    with pytest.raises(RebootedError, match="does not know this session"):
        client.ping(b"", soon())


def test_a_report_about_another_size_is_refused() -> None:
    client = opened(
        FakeDevice(below=lambda _device, size: dataclasses.replace(report(size, "OK"), arena_bytes=size + 1))
    )
    with pytest.raises(DeviceError, match="trial of 10 bytes, the device reports one of 11"):
        client.trial(10, soon())


def test_an_answer_of_another_kind_is_refused() -> None:
    device = FakeDevice()
    client = opened(device)
    device.hangs = True
    device.out += encode_frame(wire.to_frame(wire.Resetting(), nonce=1, sequence=2))
    with pytest.raises(DeviceError, match="answered PingRequest with Resetting"):
        client.ping(b"", soon())
